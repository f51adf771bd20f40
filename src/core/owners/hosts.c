/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a cluster; see hosts.h. */
#include "core/owners/hosts.h"

#include "base/alloc.h"
#include "base/check.h"
#include "core/acquire/grants.h"
#include "core/command/codec.h"
#include "core/command/command.h"
#include "core/command/limits.h"
#include "core/command/section.h"
#include "core/owners/owners_step.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/step/core.h"
#include "core/transaction/txn_end.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"

enum { NAME_BYTES_MAX = 256, HOST_BYTES_MIN = 12 };

/* --- The table ---------------------------------------------------------------------------------------------------- */

static void replace_text(struct slice *text, struct slice by)
{
    mem_free_slice(text);
    *text = mem_dup_slice(by);
}

static void free_texts(struct core_host *host)
{
    mem_free_slice(&host->name);
    mem_free_slice(&host->group);
    mem_free_slice(&host->address);
    mem_free_slice(&host->build);
}

void hosts__free(struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        free_texts(&hosts->all[i]);
    mem_free(hosts->all);
    *hosts = (struct hosts){0};
}

static struct core_host *find_host(struct hosts *hosts, struct slice name)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (slice_equal(hosts->all[i].name, name))
            return &hosts->all[i];
    return NULL;
}

static struct core_host *add_host(struct hosts *hosts, struct slice name)
{
    REQUIRE(hosts->last_number < UINT16_MAX && name.len > 0); /* else the number of another host is given again */
    size_t at = 0;
    hosts->all = mem_realloc(hosts->all, (hosts->count + 1) * sizeof *hosts->all);
    while (at < hosts->count && slice_compare(hosts->all[at].name, name) < 0)
        at++;
    memmove(&hosts->all[at + 1], &hosts->all[at], (hosts->count - at) * sizeof *hosts->all);
    hosts->count++;
    hosts->all[at] = (struct core_host){.number = (uint16_t)++hosts->last_number, .name = mem_dup_slice(name)};
    ENSURE(at + 1 == hosts->count || slice_compare(name, hosts->all[at + 1].name) < 0); /* no other has the name */
    return &hosts->all[at];
}

static void remove_host(struct hosts *hosts, struct core_host *host)
{
    size_t at = (size_t)(host - hosts->all);
    REQUIRE(at < hosts->count && host->life == 0);
    free_texts(host);
    memmove(host, host + 1, (hosts->count - at - 1) * sizeof *host);
    hosts->count--;
}

const struct core_host *core_hosts(const struct core *core, size_t *ret_count)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    *ret_count = core->owners->hosts.count;
    return core->owners->hosts.all;
}

static struct core_host *by_number(const struct core *core, uint64_t number)
{
    const struct hosts *hosts = &core->owners->hosts;
    for (size_t i = 0; i < hosts->count; i++)
        if (hosts->all[i].number == number)
            return &hosts->all[i];
    return NULL;
}

const struct core_host *core_host(const struct core *core, uint16_t number)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return by_number(core, number);
}

bool owners__accept_group(struct core *core, uint16_t host, uint64_t life, uint64_t number)
{
    REQUIRE(!core->open);
    if (life == 0)
        return true;
    struct core_host *found = by_number(core, host);
    if (found == NULL || found->life != life || number <= found->entries)
        return false;
    found->entries = number;
    return true;
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

/*
 * Ends the host's life: its waiting requests, of which those for locks of sessions and named writes keep their places,
 * the transactions it began for requests, and the attachments of its connections. Does nothing if it is not in the
 * cluster. Returns: 0; fatal codes.
 */
static int end_life(struct core *core, struct core_host *host, bool single_step)
{
    REQUIRE(core->open);
    size_t all = core->limits.ephemeral_batch, left = all;
    if (host->life == 0)
        return 0;
    host->life = 0;
    int r = grants__cancel_gone_host(core, host->number, single_step);
    if (r < 0)
        return tl_trace(r);
    txn__abandon_host(core, host->number);
    txn__end_abandoned(core, &left);
    cost_charge_work(core, WRITE_WORK_PER_COST * (uint64_t)(all - left));
    return session__restart(core, host->number);
}

static bool is_name(struct slice text)
{
    return text.len > 0 && text.len <= NAME_BYTES_MAX;
}

static bool has_other_build(const struct core *core, const struct join_command *join)
{
    const struct hosts *hosts = &core->owners->hosts;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct core_host *host = &hosts->all[i];
        if (host->life != 0 && !slice_equal(host->name, join->name) && !slice_equal(host->build, join->build))
            return true;
    }
    return false;
}

/* Returns: whether the JOIN is refused, with the problem in the command. */
static bool refuse_join(struct core *core, struct command *command)
{
    const struct join_command *join = &command->join;
    const char *limit = core_limits_differ(&join->limits, &core->limits);
    const char *reason = NULL;

    if (!is_name(join->name) || !is_name(join->group) || join->life == 0)
        reason = "a host needs a name, a group, and a number of its life";
    else if (has_other_build(core, join))
        reason =
            "the live hosts run another build, and all hosts of a cluster run the same: stop them before the first "
            "host of the new build starts";
    else if (core->owners->hosts.last_number == UINT16_MAX && find_host(&core->owners->hosts, join->name) == NULL)
        reason = "the cluster has no number left for a new host";
    if (reason == NULL && limit == NULL)
        return false;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "%s%s",
                reason != NULL ? reason : "it was started with another limit than the hosts of the cluster: ",
                reason != NULL ? "" : limit);
    return true;
}

/*
 * Begins the chain anew when the first host of another build joins. The hosts before may have stopped
 * at different positions; then each one has applied the rest of the log with the new build, and their
 * chains differ although their states are equal. Within one build the chain continues, so that states
 * that differ are found after a stop of all hosts, too.
 */
static void restart_chain(struct core *core, struct slice build)
{
    const struct hosts *hosts = &core->owners->hosts;
    bool other_build = false;
    for (size_t i = 0; i < hosts->count; i++) {
        if (hosts->all[i].life != 0)
            return;
        other_build = other_build || !slice_equal(hosts->all[i].build, build);
    }
    if (core->chained && other_build)
        core->chain = core->ts;
}

int core__do_join(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_JOIN);
    struct hosts *hosts = &core->owners->hosts;
    struct join_command *join = &command->join;
    struct core_host *host = find_host(hosts, join->name);

    if (host != NULL && host->life == join->life) { /* repeated JOIN */
        join->number = host->number;
        return 0;
    }
    if (refuse_join(core, command))
        return 0;
    int r = host == NULL ? 0 : end_life(core, host, join->single_step);
    if (r < 0)
        return tl_trace(r);
    restart_chain(core, join->build);
    if (host == NULL)
        host = add_host(hosts, join->name);
    INSIST(host->life == 0 && host->number != 0); /* a life before this one has ended */
    replace_text(&host->group, join->group);
    replace_text(&host->address, join->address);
    replace_text(&host->build, join->build);
    host->life = join->life;
    host->entries = 0;
    host->barrier_clock = core->clock; /* it had no connections before */
    host->low = 0;
    host->beat_ts = core->ts;
    join->number = host->number;
    return 0;
}

int core__do_host_gone(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_HOST_GONE);
    const struct gone_command *gone = &command->gone;
    struct core_host *host = find_host(&core->owners->hosts, gone->name);

    if (host == NULL || (host->life != gone->life && !(gone->forget && host->life == 0)))
        return 0;
    int r = end_life(core, host, gone->single_step);
    if (gone->forget)
        remove_host(&core->owners->hosts, host);
    return r < 0 ? tl_trace(r) : 0;
}

int core__do_heartbeat(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_HEARTBEAT);
    const struct heartbeat_command *beat = &command->heartbeat;
    struct core_host *host = by_number(core, host_of_number(command->request));

    if (host == NULL || host->life == 0)
        return 0;
    host->barrier_clock = beat->barrier_clock > host->barrier_clock ? beat->barrier_clock : host->barrier_clock;
    host->low = beat->low > host->low ? beat->low : host->low;
    host->beat_ts = core->ts;
    return 0;
}

/* --- Checkpoint --------------------------------------------------------------------------------------------------- */

static void codec_text(struct codec *codec, struct slice *text)
{
    struct slice bytes = *text;
    codec_bytes(codec, &bytes);
    if (codec_reads(codec))
        *text = codec->bad ? SLICE_NONE : mem_dup_slice(bytes);
}

static void codec_host(struct codec *codec, struct core_host *host)
{
    uint64_t number = host->number;

    codec_number(codec, &number);
    codec_require(codec, number != 0 && number <= UINT16_MAX);
    host->number = codec->bad ? 0 : (uint16_t)number;
    codec_text(codec, &host->name);
    codec_text(codec, &host->group);
    codec_text(codec, &host->address);
    codec_text(codec, &host->build);
    codec_number(codec, &host->life);
    codec_number(codec, &host->entries);
    codec_number(codec, &host->barrier_clock);
    codec_number(codec, &host->low);
    codec_number(codec, &host->beat_ts);
}

/* Whether numbers are distinct and valid, and names sorted without duplicates. */
static bool are_valid(const struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        if (hosts->all[i].number > hosts->last_number ||
            (i > 0 && slice_compare(hosts->all[i - 1].name, hosts->all[i].name) >= 0))
            return false;
        for (size_t j = 0; j < i; j++)
            if (hosts->all[j].number == hosts->all[i].number)
                return false;
    }
    return true;
}

void hosts__codec(struct sections *sections, struct hosts *hosts)
{
    struct codec codec = section_begin(sections, SECTION_HOSTS);
    size_t count = hosts->count;

    REQUIRE(codec_reads(&codec) ? count == 0 : count <= hosts->last_number);
    codec_number(&codec, &hosts->last_number);
    codec_require(&codec, hosts->last_number <= UINT16_MAX);
    codec_array(&codec, NULL, &count, 0, HOST_BYTES_MIN);
    codec_require(&codec, count <= hosts->last_number);
    if (codec_reads(&codec)) {
        hosts->count = codec.bad ? 0 : count;
        hosts->all = mem_zalloc((hosts->count + 1) * sizeof *hosts->all);
    }
    for (size_t i = 0; i < hosts->count; i++)
        codec_host(&codec, &hosts->all[i]);
    if (codec_reads(&codec))
        codec_require(&codec, codec.bad || are_valid(hosts));
    section_end(sections, &codec);
}
