/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a session in SPACE_SYSTEM: key 'S' and its id, without a value. It exists while
 * commands find the session, so that readers on any thread can check that (core_find_session()).
 * Everything else about a session is in memory, and so in checkpoints.
 *
 * It is removed in the unit that makes the session terminating, or, if the whole end is in that
 * unit, with the session.
 */
#include "core/session/session.h"

#include "base/check.h"
#include "base/magic.h"
#include "core/unit/unit.h"

static struct slice session_key(struct buf *buf, struct slice id)
{
    buf_byte(buf, 'S');
    buf_slice(buf, id);
    return buf_as_slice(buf);
}

void session__put_record(struct core *core, struct session *session)
{
    REQUIRE(core->open && MAGIC_VALID(session, SESSION_MAGIC));
    REQUIRE(!session->terminating); /* readers would find it */
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    store_batch_put(core->batch, SPACE_SYSTEM, session_key(&key, session->id), SLICE_LIT(""));
    session->recorded = true;
    session__touch(core, session);
    buf_deinit(&key);
}

void session__drop_record(struct core *core, struct session *session)
{
    REQUIRE(core->open && MAGIC_VALID(session, SESSION_MAGIC));
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    if (session->recorded)
        store_batch_delete(core->batch, SPACE_SYSTEM, session_key(&key, session->id));
    session->recorded = false;
    session__touch(core, session);
    buf_deinit(&key);
}

int session__check_stored(struct store *store, struct slice id)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = store_get(store, SPACE_SYSTEM, TL_TS_MAX, session_key(&key, id), &value);
    if (r == 0)
        store_value_release(&value);
    return r;
}
