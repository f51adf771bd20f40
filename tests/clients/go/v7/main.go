// SPDX-License-Identifier: Apache-2.0

// Calls a server as users of Elasticsearch's library for Go, 7, do: its low-level API and its bulk indexer.
//
//	go run ./v7 URL
//
// Each case begins on an empty server. Prints a line for each case; exits with 1 if one failed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v7"
	"github.com/elastic/go-elasticsearch/v7/esapi"
	"github.com/elastic/go-elasticsearch/v7/esutil"
)

var es *elasticsearch.Client

type object = map[string]any

// Fails the case unless the call was answered with the status. Returns the reply.
func ask(status int, response *esapi.Response, err error) object {
	check(err)
	defer response.Body.Close()
	reply := object{}
	check(json.NewDecoder(response.Body).Decode(&reply))
	expect(response.StatusCode, status)
	return reply
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect[T comparable](value, expected T) {
	if value != expected {
		panic(fmt.Errorf("%v instead of %v", value, expected))
	}
}

// The member of a reply at a path of names.
func at(reply any, names ...string) any {
	for _, name := range names {
		members, _ := reply.(object)
		reply = members[name]
	}
	return reply
}

func body(value any) *strings.Reader {
	text, err := json.Marshal(value)
	check(err)
	return strings.NewReader(string(text))
}

func makeIndex() {
	mappings := object{"properties": object{"name": object{"type": "keyword"}, "size": object{"type": "long"}}}
	response, err := es.Indices.Create("fs", es.Indices.Create.WithBody(body(object{"mappings": mappings})))
	ask(200, response, err)
}

func fill(count int) {
	var stored atomic.Int64
	indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: es, Index: "fs", FlushBytes: 20000, NumWorkers: 2, Refresh: "true"})
	check(err)
	for i := 0; i < count; i++ {
		check(indexer.Add(context.Background(), esutil.BulkIndexerItem{
			Action: "index", DocumentID: fmt.Sprint(i), Body: body(object{"name": fmt.Sprintf("n%d", i%10), "size": i}),
			OnSuccess: func(context.Context, esutil.BulkIndexerItem, esutil.BulkIndexerResponseItem) { stored.Add(1) },
		}))
	}
	check(indexer.Close(context.Background()))
	expect(int(stored.Load()), count)
	expect(int(indexer.Stats().NumFailed), 0)
}

// A call of Tidelock's own, as docs/http-api.md shows it.
func native(method, path string, members object) object {
	request, err := http.NewRequest(method, path, body(members))
	check(err)
	request.Header.Set("Content-Type", "application/json")
	response, err := es.Perform(request)
	check(err)
	defer response.Body.Close()
	reply := object{}
	check(json.NewDecoder(response.Body).Decode(&reply))
	return reply
}

var cases = []struct {
	name string
	run  func()
}{
	{"documents", func() {
		response, err := es.Index("fs", body(object{"size": 1}), es.Index.WithDocumentID("1"), es.Index.WithRefresh("true"))
		expect(at(ask(201, response, err), "result"), any("created"))
		response, err = es.Get("fs", "1")
		expect(at(ask(200, response, err), "_source", "size"), any(1.0))
		response, err = es.Update("fs", "1", body(object{"doc": object{"size": 2}}))
		expect(at(ask(200, response, err), "result"), any("updated"))
		response, err = es.Exists("fs", "2")
		check(err)
		expect(response.StatusCode, 404)
		response, err = es.Delete("fs", "1")
		expect(at(ask(200, response, err), "result"), any("deleted"))
	}},
	{"errors", func() {
		response, err := es.Search(es.Search.WithIndex("nowhere"))
		expect(at(ask(404, response, err), "error", "type"), any("index_not_found_exception"))
		makeIndex()
		response, err = es.Create("fs", "1", body(object{"size": 1}))
		ask(201, response, err)
		response, err = es.Create("fs", "1", body(object{"size": 1}))
		expect(at(ask(409, response, err), "error", "type"), any("version_conflict_engine_exception"))
		response, err = es.Index("fs", body(object{"size": "many"}))
		expect(at(ask(400, response, err), "error", "type"), any("mapper_parsing_exception"))
		var status atomic.Int64
		indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: es, Index: "fs"})
		check(err)
		check(indexer.Add(context.Background(), esutil.BulkIndexerItem{
			Action: "create", DocumentID: "1", Body: body(object{"size": 1}),
			OnFailure: func(_ context.Context, _ esutil.BulkIndexerItem, reply esutil.BulkIndexerResponseItem, _ error) {
				status.Store(int64(reply.Status))
			},
		}))
		check(indexer.Close(context.Background()))
		expect(status.Load(), 409)
	}},
	{"searches", func() {
		makeIndex()
		fill(100)
		response, err := es.Search(es.Search.WithIndex("fs"), es.Search.WithTrackTotalHits(true),
			es.Search.WithBody(body(object{"query": object{"term": object{"name": "n3"}}, "sort": []object{{"size": "desc"}}, "size": 3})))
		found := ask(200, response, err)
		expect(at(found, "hits", "total", "value"), any(10.0))
		expect(at(found, "hits", "hits").([]any)[0].(object)["_id"], any("93"))
		response, err = es.Count(es.Count.WithIndex("fs"), es.Count.WithQuery("size:>=90"))
		expect(at(ask(200, response, err), "count"), any(10.0))
	}},
	{"scrolls", func() {
		makeIndex()
		fill(250)
		response, err := es.Search(es.Search.WithIndex("fs"), es.Search.WithScroll(time.Minute), es.Search.WithSize(100), es.Search.WithSort("_doc"))
		page, seen := ask(200, response, err), 0
		for len(at(page, "hits", "hits").([]any)) > 0 {
			seen += len(at(page, "hits", "hits").([]any))
			response, err = es.Scroll(es.Scroll.WithScrollID(page["_scroll_id"].(string)), es.Scroll.WithScroll(time.Minute))
			page = ask(200, response, err)
		}
		expect(seen, 250)
		response, err = es.ClearScroll(es.ClearScroll.WithScrollID(page["_scroll_id"].(string)))
		expect(at(ask(200, response, err), "succeeded"), any(true))
	}},
	{"by query", func() {
		makeIndex()
		fill(100)
		response, err := es.UpdateByQuery([]string{"fs"}, es.UpdateByQuery.WithConflicts("proceed"), es.UpdateByQuery.WithBody(
			body(object{"query": object{"term": object{"name": "n3"}}, "script": object{"source": "ctx._source.size = 0"}})))
		expect(at(ask(200, response, err), "updated"), any(10.0))
		response, err = es.DeleteByQuery([]string{"fs"}, body(object{"query": object{"term": object{"size": 0}}}))
		expect(at(ask(200, response, err), "deleted"), any(11.0))
	}},
	{"locks", func() {
		session := native("POST", "/_session", object{"ttl": "1m"})["session"].(string)
		native("POST", "/_lock", object{"session": session, "locks": []object{{"mode": "exclusive", "index": "fs"}}})
		response, err := es.Index("fs", body(object{"size": 1}), es.Index.WithDocumentID("1"), es.Index.WithTimeout(time.Nanosecond))
		expect(at(ask(409, response, err), "error", "type"), any("lock_wait_timeout_exception"))
		response, err = es.Index("fs", body(object{"size": 1}), es.Index.WithDocumentID("1"), es.Index.WithHeader(map[string]string{"Tidelock-Session": session}))
		ask(201, response, err)
		native("POST", "/_unlock", object{"session": session})
	}},
}

func run(name string, run func()) (ok bool) {
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Printf("go-7 %s: FAILED\n%v\n", name, failure)
		}
	}()
	response, err := es.Indices.Delete([]string{"*"})
	ask(200, response, err)
	run()
	fmt.Printf("go-7 %s: ok\n", name)
	return true
}

func main() {
	var err error
	es, err = elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{os.Args[1]}})
	check(err)
	failed := 0
	for _, each := range cases {
		if !run(each.name, each.run) {
			failed = 1
		}
	}
	os.Exit(failed)
}
