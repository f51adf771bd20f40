// SPDX-License-Identifier: Apache-2.0
//
// What users of Elasticsearch's client libraries for JavaScript do, with one library after another.
//
//     node clients.mjs LIBRARY URL
//
// The libraries wrap the same calls in different ways; a `kit` below is the little that differs. Each case begins on an empty
// server. Prints a line for each case; exits with 1 if one failed.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [library, url] = process.argv.slice(2);
const require = createRequire(import.meta.url);

// --- Kits ------------------------------------------------------------------------------------------------------------

function kitOf16() {
    const { Client, errors } = require("elasticsearch-16");
    const make = (options = {}) => new Client({ host: url, apiVersion: "5.6", log: [], ...options });
    return {
        make, type: "file",
        call: (api, params) => api(params),
        status: (error) => error.status,
        isNotFound: (error) => error instanceof errors.NotFound,
        isConflict: (error) => error instanceof errors.Conflict,
        isBadRequest: (error) => error instanceof errors.BadRequest,
        kind: (error) => error.body.error.type,
        sniff: (client) => new Promise((resolve, reject) =>
            client.transport.sniff((error) => (error ? reject(error) : resolve(client.transport.connectionPool.getAllHosts().map(String))))),
        total: (found) => found.hits.total,
    };
}

// The libraries since 7: a class of errors, helpers, a reply in `body` or as it is.
function kitOfNew(name, bare) {
    const { Client, errors } = require(name);
    const statusIs = (status) => (error) => error instanceof errors.ResponseError && error.statusCode === status;
    return {
        make: (options = {}) => new Client({ node: url, ...options }),
        call: async (api, params) => (bare ? api(params) : (await api(params)).body),
        status: (error) => error.statusCode,
        isNotFound: statusIs(404), isConflict: statusIs(409), isBadRequest: statusIs(400),
        kind: (error) => error.meta.body.error.type,
        // What the library tells of a sniff of its own: the nodes that it found.
        sniff: (client) => new Promise((resolve, reject) =>
            (bare ? client.diagnostic : client).on("sniff", (error, result) => (error ? reject(error) : resolve(result.meta.sniff.hosts.map((host) => String(host.url)))))),
        total: (found) => found.hits.total.value,
    };
}

const kit = {
    "elasticsearch-16": kitOf16,
    "elastic-7": () => kitOfNew("elastic-7", false),
    "elastic-8": () => kitOfNew("elastic-8", true),
    opensearch: () => kitOfNew("opensearch", false),
}[library]();

// --- What cases share ------------------------------------------------------------------------------------------------

const client = kit.make();
const typed = kit.type ? { type: kit.type } : {};

// A call by its path in the library: ask("indices.create", {...}).
function ask(path, params = {}) {
    const names = path.split(".");
    const owner = names.slice(0, -1).reduce((object, name) => object[name], client);
    const api = owner[names.at(-1)];
    assert.equal(typeof api, "function", `${library} has no ${path}`);
    return kit.call(api.bind(owner), params);
}

async function fails(promise, is, kind) {
    const error = await promise.then(() => assert.fail("it was done"), (reason) => reason);
    assert.ok(is(error), `${error.stack}`);
    if (kind) assert.equal(kit.kind(error), kind);
}

async function fill(index, count) {
    const body = [];
    for (let i = 0; i < count; i++)
        body.push({ index: { _index: index, _id: String(i), ...(kit.type ? { _type: kit.type } : {}) } }, { name: `n${i % 10}`, size: i });
    const reply = await ask("bulk", { body, refresh: true });
    assert.equal(reply.errors, false);
    assert.equal(reply.items.length, count);
}

const mappings = { properties: { name: { type: "keyword" }, size: { type: "long" } } };
const makeIndex = (index) => ask("indices.create", { index, body: { mappings: kit.type ? { [kit.type]: mappings } : mappings } });

async function taskDone(id) {
    for (let tries = 0; tries < 600; tries++) {
        const task = await ask("tasks.get", kit.type ? { taskId: id } : { task_id: id });
        if (task.completed) return task;
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return assert.fail("the task did not end");
}

// --- Cases -----------------------------------------------------------------------------------------------------------

const cases = {
    async greeting() {
        await client.ping();
        const info = await ask("info");
        assert.equal(info.version.distribution, library === "opensearch" ? "opensearch" : undefined);
        const health = await ask("cluster.health", kit.type ? { waitForStatus: "yellow" } : { wait_for_status: "yellow" });
        assert.equal(health.status, "green");
        await ask("cluster.stats");
        await ask("nodes.info");
        await ask("nodes.stats");
    },

    async documents() {
        await makeIndex("fs");
        const one = { index: "fs", id: "1", ...typed };
        assert.equal((await ask("index", { ...one, body: { name: "a", size: 1 }, refresh: true })).result, "created");
        assert.deepEqual((await ask("get", one))._source, { name: "a", size: 1 });
        assert.deepEqual(await ask("getSource", one), { name: "a", size: 1 });
        assert.equal(await ask("exists", one), true);
        assert.equal(await ask("exists", { ...one, id: "2" }), false);
        const both = await ask("mget", { index: "fs", ...typed, body: { ids: ["1", "2"] } });
        assert.deepEqual(both.docs.map((doc) => doc.found), [true, false]);
        await ask("update", { ...one, body: { doc: { size: 2 } } });
        await ask("update", { ...one, body: { script: { source: "ctx._source.size += params.by", params: { by: 40 } } } });
        assert.equal((await ask("get", one))._source.size, 42);
        await ask("update", { ...one, id: "3", body: { script: { source: "ctx._source.size++" }, upsert: { size: 7 } } });
        assert.equal((await ask("get", { ...one, id: "3" }))._source.size, 7);
        assert.equal((await ask("delete", one)).result, "deleted");
    },

    async errors() {
        const one = { index: "fs", id: "1", ...typed };
        await fails(ask("search", { index: "nowhere" }), kit.isNotFound, "index_not_found_exception");
        await makeIndex("fs");
        await fails(ask("get", one), kit.isNotFound);
        await ask("create", { ...one, body: { size: 1 } });
        await fails(ask("create", { ...one, body: { size: 1 } }), kit.isConflict, "version_conflict_engine_exception");
        await fails(makeIndex("fs"), kit.isBadRequest);
        await fails(ask("index", { ...one, body: { size: "many" } }), kit.isBadRequest, "mapper_parsing_exception");
        await fails(ask("search", { index: "fs", body: { query: { nonsense: {} } } }), kit.isBadRequest, "parsing_exception");
        const mixed = await ask("bulk", { body: [
            { create: { _index: "fs", _id: "1", ...(kit.type ? { _type: kit.type } : {}) } }, { size: 1 },
            { index: { _index: "fs", _id: "2", ...(kit.type ? { _type: kit.type } : {}) } }, { size: 2 },
        ] });
        assert.equal(mixed.errors, true);
        assert.deepEqual(mixed.items.map((item) => Object.values(item)[0].status), [409, 201]);
    },

    async searches() {
        await makeIndex("fs");
        await fill("fs", 100);
        const found = await ask("search", { index: "fs", body: { query: { term: { name: "n3" } }, sort: [{ size: "desc" }], size: 3 } });
        assert.deepEqual(found.hits.hits.map((hit) => hit._source.size), [93, 83, 73]);
        assert.equal(kit.total(found), 10);
        assert.equal((await ask("count", { index: "fs", body: { query: { range: { size: { gte: 90 } } } } })).count, 10);
        const many = await ask("msearch", { body: [{ index: "fs" }, { query: { match_all: {} }, size: 0 }, { index: "nowhere" }, {}] });
        assert.equal(kit.total(many.responses[0]), 100);
        assert.equal(many.responses[1].error.type, "index_not_found_exception");
    },

    async scrolls() {
        await makeIndex("fs");
        await fill("fs", 250);
        let page = await ask("search", { index: "fs", scroll: "1m", size: 100, body: { sort: ["_doc"] } });
        const seen = new Set();
        while (page.hits.hits.length) {
            for (const hit of page.hits.hits) seen.add(hit._id);
            page = await ask("scroll", kit.type ? { scrollId: page._scroll_id, scroll: "1m" } : { body: { scroll_id: page._scroll_id, scroll: "1m" } });
        }
        assert.equal(seen.size, 250);
        await ask("clearScroll", kit.type ? { scrollId: page._scroll_id } : { body: { scroll_id: [page._scroll_id] } });
    },

    async aggregations() {
        await makeIndex("fs");
        await fill("fs", 100);
        const body = { size: 0, aggs: { names: { terms: { field: "name", size: 20 }, aggs: { sizes: { stats: { field: "size" } } } } } };
        const { names } = (await ask("search", { index: "fs", body })).aggregations;
        assert.equal(names.buckets.length, 10);
        const third = names.buckets.find((bucket) => bucket.key === "n3");
        assert.equal(third.doc_count, 10);
        assert.deepEqual([third.sizes.min, third.sizes.max, third.sizes.avg], [3, 93, 48]);
    },

    async byQuery() {
        await makeIndex("fs");
        await fill("fs", 100);
        const later = kit.type ? { waitForCompletion: false } : { wait_for_completion: false };
        const update = await ask("updateByQuery", { index: "fs", ...later, body: { query: { term: { name: "n3" } }, script: { source: "ctx._source.size = 0" } } });
        const task = await taskDone(update.task);
        assert.equal(task.response.updated, 10);
        const gone = await ask("deleteByQuery", { index: "fs", refresh: true, body: { query: { term: { name: "n4" } } } });
        assert.equal(gone.deleted, 10);
        const copied = await ask("reindex", { refresh: true, body: { source: { index: "fs" }, dest: { index: "copy" } } });
        assert.equal(copied.created, 90);
        assert.equal((await ask("count", { index: "copy", body: { query: { term: { size: 0 } } } })).count, 11);
    },

    async catalog() {
        await makeIndex("fs");
        await ask("indices.putAlias", { index: "fs", name: "files" });
        assert.deepEqual(Object.keys(await ask("indices.getAlias", { name: "files" })), ["fs"]);
        await ask("indices.putSettings", { index: "fs", body: { index: { number_of_replicas: 0 } } });
        await ask("indices.refresh", { index: "fs" });
        assert.equal(await ask("indices.exists", { index: "fs" }), true);
        assert.equal(await ask("indices.exists", { index: "nowhere" }), false);
        const rows = await ask("cat.indices", { format: "json" });
        assert.deepEqual(rows.map((row) => row.index), ["fs"]);
        await ask("indices.delete", { index: "fs" });
    },

    async sniffing() {
        const sniffer = kit.make({ sniffOnStart: true });
        const found = await kit.sniff(sniffer);
        assert.deepEqual(found.map((node) => new URL(node).host), [new URL(url).host]);
        await sniffer.ping();
        await sniffer.close();
    },
};

if (!kit.type) {
    cases.helpers = async () => {
        await makeIndex("fs");
        const documents = (async function* () { for (let i = 0; i < 1200; i++) yield { name: `n${i % 10}`, size: i }; })();
        const result = await client.helpers.bulk({
            datasource: documents, refreshOnCompletion: "fs", flushBytes: 20000,
            onDocument: (doc) => ({ index: { _index: "fs", _id: String(doc.size) } }),
        });
        assert.deepEqual([result.total, result.successful, result.failed], [1200, 1200, 0]);
        let count = 0;
        for await (const doc of client.helpers.scrollDocuments({ index: "fs", size: 100, body: { query: { match_all: {} } } })) count += doc.size >= 0;
        assert.equal(count, 1200);
        const few = await client.helpers.search({ index: "fs", body: { query: { term: { name: "n7" } }, size: 5 } });
        assert.deepEqual(few.map((doc) => doc.name), Array(5).fill("n7"));
        const searcher = client.helpers.msearch();
        const [one, other] = await Promise.all([
            searcher.search({ index: "fs" }, { query: { term: { name: "n1" } } }),
            searcher.search({ index: "fs" }, { query: { term: { name: "n2" } } }),
        ]);
        assert.deepEqual([kit.total(one.body), kit.total(other.body)], [120, 120]);
        await searcher.stop();
    };

    cases.locks = async () => {
        const native = async (method, path, body) => {
            const reply = await client.transport.request({ method, path, body });
            return reply.body ?? reply;
        };
        const { session } = await native("POST", "/_session", { ttl: "1m" });
        await native("POST", "/_lock", { session, locks: [{ mode: "exclusive", index: "fs" }] });
        await fails(ask("index", { index: "fs", id: "1", timeout: "0s", body: { size: 1 } }), kit.isConflict, "lock_wait_timeout_exception");
        await client.index({ index: "fs", id: "1", body: { size: 2 } }, { headers: { "tidelock-session": session } });
        await native("DELETE", `/_session/${session}`);
        assert.equal((await ask("get", { index: "fs", id: "1" }))._source.size, 2);
    };

    cases.pointInTime = async () => {
        await makeIndex("fs");
        await fill("fs", 30);
        const opensearch = library === "opensearch";
        const opened = opensearch ? await ask("createPit", { index: "fs", keep_alive: "1m" }) : await ask("openPointInTime", { index: "fs", keep_alive: "1m" });
        const id = opensearch ? opened.pit_id : opened.id;
        await ask("index", { index: "fs", id: "late", body: { size: 1000 }, refresh: true });
        const seen = [];
        for (let after; ;) {
            const body = { pit: { id, keep_alive: "1m" }, size: 8, sort: [{ size: "asc" }], ...(after ? { search_after: after } : {}) };
            const page = await ask("search", { body });
            if (page.hits.hits.length === 0) break;
            seen.push(...page.hits.hits.map((hit) => hit._source.size));
            after = page.hits.hits.at(-1).sort;
        }
        assert.deepEqual(seen, [...Array(30).keys()]);
        await (opensearch ? ask("deletePit", { body: { pit_id: [id] } }) : ask("closePointInTime", { body: { id } }));
    };
}

// --- Running ---------------------------------------------------------------------------------------------------------

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
    try {
        await ask("indices.delete", { index: "*" });
        await run();
        console.log(`${library} ${name}: ok`);
    } catch (error) {
        failed++;
        console.log(`${library} ${name}: FAILED\n${error.stack}${error.meta?.body ? `\n${JSON.stringify(error.meta.body)}` : ""}`);
    }
}
await client.close();
process.exit(failed ? 1 : 0);
