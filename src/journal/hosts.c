/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of a cluster: joining, absence, comparison of their states. README.md, "In a cluster".
 */
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/magic.h"
#include "journal/cluster.h"
#include "journal/read_ahead.h"

enum { EXIT_DIFFERS = 71 };

#define JOIN_US TL_SECOND
#define REPORT_AGAIN_US (2 * TL_SECOND)
#define REFUSAL_REPORT_US (2 * BEAT_US) /* a host that runs has sent a heartbeat by then */

/* --- Joining ------------------------------------------------------------------------------------------------------ */

/*
 * Expels the previous life of this data directory, which is over: its lease need not run out first.
 * A process does this before it has joined, since the one before it has ended, and after an attempt
 * of unknown outcome, which may have begun a life. Otherwise the life is of another process with a
 * copy of the directory: of two that expelled each other neither would serve.
 */
static void expel_previous_life(struct cluster *cluster)
{
    struct cmdlog_hosts *hosts;
    if (cmdlog_list_hosts(cluster->log, 0, clock_boot_us() + JOIN_US, &hosts) != 0)
        return;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct cmdlog_host *host = &hosts->hosts[i];
        if (slice_is(host->name, cluster->name) && cluster->about[0] != '\0' && slice_is(host->about, cluster->about) &&
            cmdlog_expel(cluster->log, host->name, host->life, clock_boot_us() + JOIN_US) == CMDLOG_UNREACHABLE)
            break; /* its lease must run out */
    }
    mem_free(hosts);
}

/* Submits an entry of one command that is in no life, before this host has joined. Frees the command. */
static int submit_lifeless(struct journal *journal, struct command *command, uint64_t *ret_number)
{
    REQUIRE(command->type == COMMAND_JOIN || command->type == COMMAND_HOST_GONE);
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = 0}; /* this host's clock has not been compared yet */
    pthread_mutex_lock(&journal->queue_lock);
    head.clock = cluster__clock(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    struct slice part = buf_as_slice(&bytes);
    int r = cmdlog_submit(journal->cluster->log, &part, 1, clock_boot_us() + JOIN_US, ret_number);
    command_free(command);
    buf_deinit(&bytes);
    return r;
}

static int submit_join(struct journal *journal, uint64_t life, uint64_t *ret_number)
{
    REQUIRE(life > 0);
    struct cluster *cluster = journal->cluster;
    struct command *command = command_new(COMMAND_JOIN, DIALECT_7);
    command->join = (struct join_command){.name = slice_from(cluster->name),
                                          .group = slice_from(cluster->group),
                                          .address = slice_from(cluster->address),
                                          .build = slice_from(cluster->build),
                                          .life = life,
                                          .limits = cluster->limits};
    return submit_lifeless(journal, command, ret_number);
}

void cluster__give_up_life(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    journal->cluster->life = 0; /* the next attempt begins another */
    journal->cluster->joining = false;
    pthread_mutex_unlock(&journal->queue_lock);
}

int cluster__join(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    uint64_t life;
    int r = cmdlog_join(cluster->log, slice_from(cluster->about), clock_boot_us() + JOIN_US, &life);
    if (r == CMDLOG_EXISTS && !cluster->has_joined) {
        expel_previous_life(cluster);
        r = cmdlog_join(cluster->log, slice_from(cluster->about), clock_boot_us() + JOIN_US, &life);
    }
    cluster->has_joined = r == 0 || (r == CMDLOG_EXISTS && cluster->has_joined);
    struct cmdlog_skips *skips;
    if (r == 0)
        r = cmdlog_list_skips(cluster->log, clock_boot_us() + JOIN_US, &skips);
    if (r != 0)
        return r; /* the next attempt begins another life */
    pthread_mutex_lock(&journal->queue_lock);
    mem_free(cluster->skips_read);
    cluster->skips_read = skips;
    cluster->skips_life = life;
    cluster->life = life;
    cluster->joining = true;
    pthread_mutex_unlock(&journal->queue_lock);
    r = submit_join(journal, life, &cluster->join_number);
    if (r != 0)
        cluster__give_up_life(journal);
    return r;
}

/* --- The core's list of hosts ------------------------------------------------------------------------------------- */

/*
 * JOIN's address is HOST:PORT for a host that is reached by http, and https://HOST:PORT for one that
 * is reached by https. So every host knows the scheme of every other one.
 */
static const struct slice tls_scheme = SLICE_LIT("https://");

char *cluster__join_address(const struct journal_cluster *identity)
{
    struct buf address = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&address, identity->tls ? tls_scheme : SLICE_NONE);
    buf_slice(&address, identity->address);
    buf_byte(&address, '\0');
    return buf_detach(&address, &(size_t){0});
}

static void put_text(char **at, struct slice *text)
{
    char *to = *at;
    if (text->len > 0)
        memcpy(to, text->data, text->len);
    *at += text->len;
    *text = slice_make(to, text->len);
}

/* Returns: a copy of a list of hosts with its texts in one allocation; mem_free. */
static struct journal_host *copy_hosts(const struct journal_host *from, size_t count)
{
    size_t bytes = count * sizeof *from;
    for (size_t i = 0; i < count; i++)
        bytes += from[i].name.len + from[i].group.len + from[i].address.len + from[i].build.len;
    struct journal_host *hosts = mem_zalloc(bytes + 1);
    char *at = (char *)(hosts + count);
    for (size_t i = 0; i < count; i++) {
        hosts[i] = from[i];
        put_text(&at, &hosts[i].name);
        put_text(&at, &hosts[i].group);
        put_text(&at, &hosts[i].address);
        put_text(&at, &hosts[i].build);
    }
    return hosts;
}

/* Returns: a host as this one lists it; its texts are the core's. */
static struct journal_host list_host(const struct cluster *cluster, const struct core_host *host)
{
    bool tls = slice_starts_with(host->address, tls_scheme);
    return (struct journal_host){.number = host->number,
                                 .life = host->life,
                                 .live = host->life != 0,
                                 .self = slice_is(host->name, cluster->name),
                                 .tls = tls,
                                 .name = host->name,
                                 .group = host->group,
                                 .address = slice_from_offset(host->address, tls ? tls_scheme.len : 0),
                                 .build = host->build};
}

/* Returns: the list of the core's hosts; mem_free. Requires: queue_lock, core_lock. */
static struct journal_host *list_hosts(const struct journal *journal, const struct core_host *all, size_t count)
{
    REQUIRE(journal__holds(&journal->queue_lock) && journal__holds(&journal->core_lock));
    struct journal_host *listed = mem_zalloc(count * sizeof *listed + 1);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        listed[i] = list_host(journal->cluster, &all[i]);
        listed[i].keeper = listed[i].live && !any;
        any = any || listed[i].live;
    }
    struct journal_host *hosts = copy_hosts(listed, count);
    mem_free(listed);
    return hosts;
}

void cluster__update_hosts(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct cluster *cluster = journal->cluster;
    size_t count;
    const struct core_host *all = core_hosts(journal->core, &count);
    pthread_mutex_lock(&journal->queue_lock);
    mem_free(cluster->hosts);
    cluster->hosts = list_hosts(journal, all, count);
    cluster->host_count = count;
    cluster->is_keeper = false;
    cluster->live_count = 0;
    cluster->barrier_clock_min = UINT64_MAX;
    cluster->history_low_min = TL_TS_MAX;
    for (size_t i = 0; i < count; i++) {
        struct peer *peer = &cluster->peers[all[i].number];
        cluster->lives_ended += peer->life != 0 && peer->life != all[i].life;
        if (peer->life != all[i].life)
            *peer = (struct peer){.life = all[i].life, .began = clock_boot_us()};
        if (all[i].life == 0)
            continue;
        cluster->live_count++;
        cluster->is_keeper = cluster->is_keeper || (cluster->hosts[i].keeper && cluster->hosts[i].self);
        cluster->barrier_clock_min =
            all[i].barrier_clock < cluster->barrier_clock_min ? all[i].barrier_clock : cluster->barrier_clock_min;
        cluster->history_low_min = all[i].low < cluster->history_low_min ? all[i].low : cluster->history_low_min;
    }
    if (cluster->live_count == 0)
        cluster->barrier_clock_min = cluster->history_low_min = 0;
    bool mine = !cluster->joined;
    for (size_t i = 0; i < count; i++)
        mine = mine || (all[i].life != 0 && all[i].life == cluster->life);
    cluster__compare_clocks(journal);
    if (!mine) /* it was reported as gone: the core ignores its entries, whatever the log says */
        cluster->life = 0;
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
}

/* --- Clocks ------------------------------------------------------------------------------------------------------- */

/*
 * Collects the clocks of live hosts. Each is measured when its heartbeat is applied here, also this
 * host's own, so that the delay cancels out. Returns: their number; *ret_all: no live host's is
 * missing; *ret_own: this host's.
 */
static size_t collect_clocks(const struct cluster *cluster, int64_t *offsets, bool *ret_all, int64_t *ret_own)
{
    size_t count = 0;
    *ret_all = true;
    *ret_own = 0;
    for (size_t i = 0; i < cluster->host_count; i++) {
        const struct journal_host *host = &cluster->hosts[i];
        const struct peer *peer = &cluster->peers[host->number];
        bool known = peer->clock_known || (host->self && cluster->live_count == 1);
        if (!host->live)
            continue;
        *ret_all = *ret_all && known;
        if (known)
            offsets[count++] = peer->clock_offset_us;
        if (known && host->self)
            *ret_own = peer->clock_offset_us;
    }
    return count;
}

static void set_clock_is_off(struct cluster *cluster, bool off, int64_t ahead)
{
    if (off && !cluster->clock_is_off)
        log_warning("this host's clock is %" PRId64
                    " ms %s the median of the live hosts' clocks; %s until its own is set right (--clock-skew)",
                    (ahead < 0 ? -ahead : ahead) / (int64_t)TL_MS, ahead < 0 ? "below" : "above",
                    ahead < 0 ? "it follows the timestamps of the others" : "it proposes that time");
    else if (!off && cluster->clock_is_off)
        log_info("this host's clock is close to the median of the live hosts' clocks again");
    cluster->clock_is_off = off;
    /*
     * A clock below the median is not corrected: its entries get the timestamp after the newest one. It
     * may seem to be below because this host applied entries late, and a correction upwards could not
     * be taken back.
     */
    cluster->clock_correction_us = off && ahead > 0 ? -ahead : 0;
}

void cluster__compare_clocks(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct cluster *cluster = journal->cluster;
    bool all;
    int64_t own;
    if (!cluster->joined || cluster->host_count == 0)
        return;
    int64_t *offsets = mem_alloc(cluster->host_count * sizeof *offsets);
    size_t count = collect_clocks(cluster, offsets, &all, &own);
    cluster->clock_compared = cluster->clock_compared || (all && count > 0);
    if (cluster->clock_compared && count > 0) {
        int64_t ahead = own - clock_median(offsets, count);
        set_clock_is_off(cluster, (uint64_t)(ahead < 0 ? -ahead : ahead) > cluster->clock_skew_us, ahead);
    }
    mem_free(offsets);
}

void cluster__forget_clocks(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct cluster *cluster = journal->cluster;
    cluster->clock_compared = false;
    for (size_t i = 0; i < cluster->host_count; i++)
        cluster->peers[cluster->hosts[i].number].clock_known = false;
}

tl_ts cluster__proposed_ts(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct cluster *cluster = journal->cluster;
    return cluster->clock_compared ? journal__wall(journal) + (uint64_t)cluster->clock_correction_us : 0;
}

/* --- Absent hosts ------------------------------------------------------------------------------------------------- */

static bool is_in(const struct cmdlog_hosts *in, const struct journal_host *host)
{
    for (size_t i = 0; i < in->count; i++)
        if (in->hosts[i].life == host->life && slice_equal(in->hosts[i].name, host->name))
            return true;
    return false;
}

/* Returns: whether HOST_GONE must be submitted for the host now. Requires: queue_lock. */
static bool must_report_gone(const struct journal *journal, const struct journal_host *host,
                             const struct cmdlog_hosts *in, uint64_t now)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct peer *peer = &journal->cluster->peers[host->number];
    if (!host->live || host->self || is_in(in, host))
        return false;
    /*
     * A list that was asked for before the life is no evidence that the life is over. One that was asked for later is,
     * at once: a life is never listed again (guarantee 10).
     */
    return in->asked > peer->began && (peer->reported_at == 0 || now - peer->reported_at >= REPORT_AGAIN_US);
}

/* `joined`: this host has. */
static void report_gone(struct journal *journal, struct slice name, uint64_t life, bool joined)
{
    REQUIRE(name.len > 0 && life > 0);
    /* the life is over, by the list; expelling makes sure of that, whatever this host's clock says */
    if (cmdlog_expel(journal->cluster->log, name, life, clock_boot_us() + JOIN_US) != 0)
        return;
    log_warning("host %.*s is out of the cluster", (int)name.len, name.data);
    struct command *command = command_new(COMMAND_HOST_GONE, DIALECT_7);
    command->gone = (struct gone_command){.name = arena_copy(&command->arena, name), .life = life};
    if (joined)
        cluster__submit_own(journal, command);
    else if (submit_lifeless(journal, command, &(uint64_t){0}) != 0)
        log_info("the log did not accept that yet");
}

/* Returns: whether hosts that are out must be reported by this one. Requires: queue_lock. */
static bool may_report(const struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct cluster *cluster = journal->cluster;
    return cluster->joined || (cluster->refused != NULL && !cluster->refusal_is_final);
}

void cluster__report_gone(struct journal *journal, const struct cmdlog_hosts *in)
{
    struct cluster *cluster = journal->cluster;
    struct arena arena = ARENA_INIT;
    struct journal_host gone = {0};
    uint64_t now = clock_boot_us();
    pthread_mutex_lock(&journal->queue_lock);
    bool joined = cluster->joined;
    for (size_t i = 0; may_report(journal) && i < cluster->host_count && gone.number == 0; i++)
        if (must_report_gone(journal, &cluster->hosts[i], in, now)) {
            gone = cluster->hosts[i];
            gone.name = arena_copy(&arena, gone.name);
            cluster->peers[gone.number].reported_at = now;
        }
    pthread_mutex_unlock(&journal->queue_lock);
    if (gone.number != 0)
        report_gone(journal, gone.name, gone.life, joined);
    arena_deinit(&arena);
}

/*
 * Returns: whether it is certain that the refusal of this host's JOIN is by hosts that run: one has sent a heartbeat
 * since, or the refusal is not by live hosts. Requires: queue_lock.
 */
static bool is_refusal_confirmed(const struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct cluster *cluster = journal->cluster;
    bool any = false;
    for (size_t i = 0; i < cluster->host_count; i++) {
        const struct journal_host *host = &cluster->hosts[i];
        bool other = host->live && !host->self;
        any = any || other;
        if (other && cluster->peers[host->number].beat_at >= cluster->refused_at)
            return true;
    }
    return !any;
}

/* Logs, once a refusal, why this host has neither joined nor ended. Requires: queue_lock. */
static void report_refusal_waits(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct cluster *cluster = journal->cluster;
    if (cluster->refusal_reported || clock_boot_us() - cluster->refused_at < REFUSAL_REPORT_US)
        return;
    log_warning("this host is not in the cluster yet: %s. None of those hosts has sent anything since this one "
                "asked to join; it joins when their leases are over",
                cluster->refused);
    cluster->refusal_reported = true;
}

void cluster__reconsider_refusal(struct journal *journal, const struct cmdlog_hosts *in)
{
    struct cluster *cluster = journal->cluster;
    bool absent = false;
    pthread_mutex_lock(&journal->queue_lock);
    for (size_t i = 0; i < cluster->host_count; i++)
        absent = absent || (cluster->hosts[i].live && !cluster->hosts[i].self && !is_in(in, &cluster->hosts[i]));
    if (cluster->refused != NULL && !cluster->refusal_is_final && !absent) {
        if (cluster->lives_ended != cluster->refused_after)
            mem_free(tl_steal(cluster->refused)); /* with which the next JOIN is due */
        else if (is_refusal_confirmed(journal))
            cluster->refusal_is_final = true;
        else
            report_refusal_waits(journal);
        pthread_cond_broadcast(&cluster->changed);
    }
    pthread_mutex_unlock(&journal->queue_lock);
}

/* --- Equality ----------------------------------------------------------------------------------------------------- */

void cluster__record_chain(struct journal *journal, cmdlog_position position)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct cluster *cluster = journal->cluster;
    struct chain_point point = {position, core_chain(journal->core), core_last_ts(journal->core)};
    cluster->chains[cluster->chain_next++ % CHAIN_POINTS] = point;
}

void cluster__publish_applied(struct journal *journal)
{
    struct cluster *cluster = journal->cluster;
    REQUIRE(cluster->chain_next > 0);
    pthread_mutex_lock(&journal->queue_lock);
    cluster->applied = cluster->chains[(cluster->chain_next - 1) % CHAIN_POINTS];
    bool unapplied = !read_ahead_is_empty(cluster->ahead); /* the cursor is after the newest entry that was applied */
    cmdlog_position position = unapplied ? cluster->applied.position : cmdlog_cursor_position(cluster->cursor);
    cluster->passed = position > cluster->passed ? position : cluster->passed;
    pthread_cond_broadcast(&cluster->changed);
    pthread_mutex_unlock(&journal->queue_lock);
}

static const struct chain_point *find_chain_point(const struct cluster *cluster, cmdlog_position position)
{
    size_t count = cluster->chain_next < CHAIN_POINTS ? cluster->chain_next : CHAIN_POINTS;
    for (size_t i = 1; i <= count; i++) {
        const struct chain_point *point = &cluster->chains[(cluster->chain_next - i) % CHAIN_POINTS];
        if (point->position == position)
            return point;
        if (point->position < position)
            break;
    }
    return NULL;
}

void cluster__end_different(const struct cluster *cluster, const char *why)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    if (cluster->directory != NULL) {
        buf_printf(&path, "%s/differs", cluster->directory);
        buf_byte(&path, '\0');
        int file = open(path.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0) {
            (void)fsync(file);
            close(file);
        }
    }
    log_error("%s. It ends; its data directory stays unchanged for an investigation, and is not opened again: start "
              "this host with an empty one",
              why);
    (void)log_flush(LOG_END_US);
    _exit(EXIT_DIFFERS);
}

/*
 * Returns: whether the chains of all live hosts are known and at least half differ from this one's.
 *          Requires: queue_lock.
 */
static bool differs_from_half(const struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    const struct cluster *cluster = journal->cluster;
    size_t agree = 1, differ = 0;
    for (size_t i = 0; i < cluster->host_count; i++) {
        const struct journal_host *host = &cluster->hosts[i];
        if (!host->live || host->self)
            continue;
        agree += cluster->peers[host->number].verdict == PEER_AGREES;
        differ += cluster->peers[host->number].verdict == PEER_DIFFERS;
    }
    return differ > 0 && 2 * agree <= cluster->live_count && agree + differ >= cluster->live_count;
}

/*
 * Records that this host differs, and makes a heartbeat due: until the others have compared one with
 * the state that differs they must not lose this host, since of two hosts each has only the other to
 * find out by. Requires: queue_lock.
 */
static void begin_differing(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    struct cluster *cluster = journal->cluster;
    cluster->differs = true;
    cluster->differs_from = cluster->applied.position;
    cluster->beat_at = 0;
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    log_error("this host differs from half of the cluster's live hosts or more: it serves nothing any more, and ends "
              "when its heartbeat has reported that to the others");
}

/*
 * Sets the lag of a heartbeat's host: the entries after `position`, without the heartbeat's own,
 * which is the newest. A position older than all remembered ones counts as the oldest of these.
 */
static void measure_lag(const struct cluster *cluster, cmdlog_position position, struct peer *peer)
{
    REQUIRE(cluster->chain_next > 0);
    size_t count = cluster->chain_next < CHAIN_POINTS ? cluster->chain_next : CHAIN_POINTS, after = 0;
    const struct chain_point *newest = &cluster->chains[(cluster->chain_next - 1) % CHAIN_POINTS];
    const struct chain_point *missed = newest;
    for (size_t i = 2; i <= count; i++) {
        const struct chain_point *point = &cluster->chains[(cluster->chain_next - i) % CHAIN_POINTS];
        if (point->position <= position)
            break;
        missed = point;
        after++;
    }
    peer->lag_entries = after;
    peer->lag_us = newest->ts - missed->ts;
}

/* Returns: whether a host is of this build. Chains of other builds differ (core_chain()). */
static bool has_own_build(const struct journal *journal, uint16_t number)
{
    const struct core_host *host = core_host(journal->core, number);
    return host != NULL && slice_is(host->build, journal->cluster->build);
}

void cluster__compare(struct journal *journal, const struct command *heartbeat, uint64_t wall)
{
    REQUIRE(heartbeat->type == COMMAND_HEARTBEAT);
    struct cluster *cluster = journal->cluster;
    uint16_t number = (uint16_t)host_of_number(heartbeat->request);
    const struct heartbeat_command *beat = &heartbeat->heartbeat;
    const struct chain_point *mine = find_chain_point(cluster, beat->position);
    pthread_mutex_lock(&journal->queue_lock);
    struct peer *peer = &cluster->peers[number];
    peer->beat_at = clock_boot_us();
    peer->beat = (struct chain_point){beat->position, beat->chain, mine != NULL ? mine->ts : 0};
    if (peer->beat.ts > peer->reached_ts)
        peer->reached_ts = peer->beat.ts;
    peer->clock_offset_us = (int64_t)(wall - journal__wall(journal));
    peer->clock_known = cluster->joined;
    cluster__compare_clocks(journal);
    measure_lag(cluster, beat->position, peer);
    bool self = number == cluster->host;
    if (mine != NULL && !self && has_own_build(journal, number)) {
        bool same = mine->chain == beat->chain;
        if (!same && peer->verdict != PEER_DIFFERS)
            log_error("host %u has another state after applying the log up to position %" PRIu64
                      ": its chain is %016" PRIx64 ", this host's %016" PRIx64,
                      number, beat->position, beat->chain, mine->chain);
        peer->verdict = same ? PEER_AGREES : PEER_DIFFERS;
    }
    if (!cluster->differs && differs_from_half(journal))
        begin_differing(journal);
    bool shown = cluster->differs && self && beat->position >= cluster->differs_from;
    pthread_mutex_unlock(&journal->queue_lock);
    if (shown)
        cluster__end_different(cluster, "after applying the same log, the state of this host differs from that of "
                                        "half of the cluster's live hosts or more");
}

/* --- Queries ------------------------------------------------------------------------------------------------------ */

size_t journal_hosts(struct journal *journal, struct journal_host **ret_hosts)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct cluster *cluster = journal->cluster;
    *ret_hosts = NULL;
    if (cluster == NULL)
        return 0;
    pthread_mutex_lock(&journal->queue_lock);
    size_t count = cluster->host_count;
    struct journal_host *hosts = copy_hosts(cluster->hosts, cluster->host_count);
    uint64_t now = clock_boot_us();
    for (size_t i = 0; i < count; i++) {
        const struct peer *peer = &cluster->peers[hosts[i].number];
        struct chain_point beat = hosts[i].self ? cluster->applied : peer->beat;
        hosts[i].applied = beat.ts;
        hosts[i].position = beat.position;
        hosts[i].chain = beat.chain;
        hosts[i].silent_us = peer->beat_at == 0 ? UINT64_MAX : now - peer->beat_at;
        hosts[i].lag_entries = peer->lag_entries;
        hosts[i].lag_us = peer->beat_at == 0              ? UINT64_MAX
                          : hosts[i].silent_us <= BEAT_US ? peer->lag_us
                                                          : peer->lag_us + hosts[i].silent_us - BEAT_US;
        hosts[i].clock_offset_us = hosts[i].self ? 0 : peer->clock_offset_us;
    }
    pthread_mutex_unlock(&journal->queue_lock);
    *ret_hosts = hosts;
    return count;
}

/* --- What other hosts have applied -------------------------------------------------------------------------------- */

/* Returns: whether writes of a reach wait for the host. */
static bool is_within(const struct cluster *cluster, const struct journal_host *host, enum journal_reach reach)
{
    return host->live && !host->self && (reach == JOURNAL_REACH_CLUSTER || slice_is(host->group, cluster->group));
}

tl_ts journal_reached(struct journal *journal, enum journal_reach reach)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct cluster *cluster = journal->cluster;
    tl_ts reached = TL_TS_MAX;
    if (cluster == NULL || reach == JOURNAL_REACH_HOST)
        return reached;
    pthread_mutex_lock(&journal->queue_lock);
    for (size_t i = 0; i < cluster->host_count; i++) {
        const struct journal_host *host = &cluster->hosts[i];
        tl_ts ts = cluster->peers[host->number].reached_ts;
        if (is_within(cluster, host, reach) && ts < reached)
            reached = ts;
    }
    pthread_mutex_unlock(&journal->queue_lock);
    return reached;
}

size_t journal_list_lagging(struct journal *journal, tl_ts ts, enum journal_reach reach,
                            struct journal_host **ret_hosts)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct cluster *cluster = journal->cluster;
    size_t count = 0;
    *ret_hosts = NULL;
    if (cluster == NULL || reach == JOURNAL_REACH_HOST)
        return 0;
    pthread_mutex_lock(&journal->queue_lock);
    struct journal_host *hosts = copy_hosts(cluster->hosts, cluster->host_count);
    for (size_t i = 0; i < cluster->host_count; i++)
        if (is_within(cluster, &hosts[i], reach) && cluster->peers[hosts[i].number].reached_ts < ts)
            hosts[count++] = hosts[i];
    pthread_mutex_unlock(&journal->queue_lock);
    *ret_hosts = hosts;
    return count;
}

void journal_record_reached(struct journal *journal, uint16_t number, uint64_t life, tl_ts ts)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct peer *peer = &journal->cluster->peers[number];
    pthread_mutex_lock(&journal->queue_lock);
    if (peer->life == life && ts > peer->reached_ts)
        peer->reached_ts = ts;
    pthread_mutex_unlock(&journal->queue_lock);
}

bool journal_is_live(struct journal *journal, uint16_t number)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct cluster *cluster = journal->cluster;
    bool live = false;
    if (cluster == NULL)
        return false;
    pthread_mutex_lock(&journal->queue_lock);
    for (size_t i = 0; i < cluster->host_count && !live; i++)
        live = cluster->hosts[i].number == number && cluster->hosts[i].live;
    pthread_mutex_unlock(&journal->queue_lock);
    return live;
}

bool journal_is_self(struct journal *journal, struct slice name, uint64_t life)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct cluster *cluster = journal->cluster;
    if (cluster == NULL)
        return false;
    pthread_mutex_lock(&journal->queue_lock);
    bool self = slice_is(name, cluster->name) && cluster->life == life && life != 0;
    pthread_mutex_unlock(&journal->queue_lock);
    return self;
}

uint16_t journal_host_number(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return journal->cluster == NULL ? 0 : journal->cluster->host;
}

bool journal_serves(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct cmdlog_lease lease;
    if (journal->cluster == NULL)
        return true;
    cmdlog_lease(journal->cluster->log, &lease);
    pthread_mutex_lock(&journal->queue_lock);
    bool in = journal->cluster->joined && lease.life == journal->cluster->life && !journal->cluster->differs;
    pthread_mutex_unlock(&journal->queue_lock);
    return in && clock_boot_us() < lease.until;
}

bool journal_serves_past(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    if (journal->cluster == NULL)
        return true;
    pthread_mutex_lock(&journal->queue_lock);
    bool differs = journal->cluster->differs;
    pthread_mutex_unlock(&journal->queue_lock);
    return !differs;
}

int journal_read_head(struct journal *journal, uint64_t until, uint64_t *ret_position)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    *ret_position = 0;
    if (journal->cluster == NULL)
        return 0;
    return cmdlog_read_head(journal->cluster->log, until, ret_position) == 0 ? 0 : JOURNAL_TIMEOUT;
}

int journal_await_position(struct journal *journal, uint64_t position, uint64_t until)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct cluster *cluster = journal->cluster;
    if (cluster == NULL)
        return 0;
    pthread_mutex_lock(&journal->queue_lock);
    bool in_time = true;
    while (in_time && cluster->passed < position)
        in_time = clock_wait(&cluster->changed, &journal->queue_lock, until);
    bool there = cluster->passed >= position;
    pthread_mutex_unlock(&journal->queue_lock);
    return there ? 0 : JOURNAL_TIMEOUT;
}

int journal_forget_host(struct journal *journal, struct slice name, struct command **ret_command)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct journal_host *hosts;
    size_t count = journal_hosts(journal, &hosts);
    int r = JOURNAL_HOST_UNKNOWN;
    for (size_t i = 0; i < count; i++)
        if (slice_equal(hosts[i].name, name))
            r = hosts[i].live || hosts[i].self ? JOURNAL_HOST_LIVES : 0;
    mem_free(hosts);
    if (r != 0)
        return r;
    /* The core has its JOIN a little later than the log has its life. */
    r = cmdlog_forget_host(journal->cluster->log, name, clock_boot_us() + JOIN_US);
    if (r != 0)
        return r == CMDLOG_EXISTS ? JOURNAL_HOST_LIVES : JOURNAL_LOG_UNREACHABLE;
    struct command *command = command_new(COMMAND_HOST_GONE, DIALECT_7);
    command->gone = (struct gone_command){.name = arena_copy(&command->arena, name), .forget = true};
    *ret_command = command;
    return 0;
}
