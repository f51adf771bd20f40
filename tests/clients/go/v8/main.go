// SPDX-License-Identifier: Apache-2.0

// Calls a server as users of Elasticsearch's library for Go, 8, do: by its typed API, which parses every member of a reply.
//
//	go run ./v8 URL
//
// Each case begins on an empty server. Prints a line for each case; exits with 1 if one failed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/refresh"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/sortorder"
)

var (
	es  *elasticsearch.TypedClient
	ctx = context.Background()
)

type file struct {
	Name string `json:"name,omitempty"`
	Size int    `json:"size"`
}

// Fails the case if the call failed. Returns the reply.
func ask[T any](reply T, err error) T {
	if err != nil {
		panic(err)
	}
	return reply
}

func expect[T comparable](value, expected T) {
	if value != expected {
		panic(fmt.Errorf("%v instead of %v", value, expected))
	}
}

// Fails the case unless the call was refused with the status and the type of error.
func refused[T any](reply T, err error) func(status int, kind string) {
	return func(status int, kind string) {
		var failure *types.ElasticsearchError
		if !errors.As(err, &failure) {
			panic(fmt.Errorf("%v instead of %d %s", err, status, kind))
		}
		expect(failure.Status, status)
		expect(failure.ErrorCause.Type, kind)
	}
}

func sizeOf(source json.RawMessage) int {
	var read file
	if err := json.Unmarshal(source, &read); err != nil {
		panic(err)
	}
	return read.Size
}

func termOf(name string, value any) *types.Query {
	return &types.Query{Term: map[string]types.TermQuery{name: {Value: value}}}
}

func makeIndex() {
	ask(es.Indices.Create("fs").Mappings(&types.TypeMapping{Properties: map[string]types.Property{
		"name": types.NewKeywordProperty(), "size": types.NewLongNumberProperty()}}).Do(ctx))
}

func fill(count int) {
	bulk := es.Bulk().Index("fs").Refresh(refresh.True)
	for i := 0; i < count; i++ {
		id := fmt.Sprint(i)
		if err := bulk.IndexOp(types.IndexOperation{Id_: &id}, file{fmt.Sprintf("n%d", i%10), i}); err != nil {
			panic(err)
		}
	}
	reply := ask(bulk.Do(ctx))
	expect(reply.Errors, false)
	expect(len(reply.Items), count)
}

// A call of Tidelock's own, as docs/http-api.md shows it.
func native(method, path string, members any) map[string]any {
	text := ask(json.Marshal(members))
	request := ask(http.NewRequest(method, path, bytes.NewReader(text)))
	request.Header.Set("Content-Type", "application/json")
	response := ask(es.Perform(request))
	defer response.Body.Close()
	reply := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		panic(err)
	}
	return reply
}

var cases = []struct {
	name string
	run  func()
}{
	{"documents", func() {
		expect(ask(es.Index("fs").Id("1").Request(file{Size: 1}).Refresh(refresh.True).Do(ctx)).Result.String(), "created")
		expect(sizeOf(ask(es.Get("fs", "1").Do(ctx)).Source_), 1)
		expect(ask(es.Update("fs", "1").Doc(file{Size: 2}).Do(ctx)).Result.String(), "updated")
		expect(sizeOf(ask(es.Get("fs", "1").Do(ctx)).Source_), 2)
		expect(ask(es.Exists("fs", "2").Do(ctx)), false)
		expect(ask(es.Delete("fs", "1").Do(ctx)).Result.String(), "deleted")
	}},
	{"errors", func() {
		refused(es.Search().Index("nowhere").Do(ctx))(404, "index_not_found_exception")
		makeIndex()
		ask(es.Create("fs", "1").Request(file{Size: 1}).Do(ctx))
		refused(es.Create("fs", "1").Request(file{Size: 1}).Do(ctx))(409, "version_conflict_engine_exception")
		refused(es.Index("fs").Request(map[string]string{"size": "many"}).Do(ctx))(400, "mapper_parsing_exception")
		expect(ask(es.Get("fs", "2").Do(ctx)).Found, false)
	}},
	{"searches", func() {
		makeIndex()
		fill(100)
		found := ask(es.Search().Index("fs").Query(termOf("name", "n3")).Size(3).
			Sort(types.SortOptions{SortOptions: map[string]types.FieldSort{"size": {Order: &sortorder.Desc}}}).Do(ctx))
		expect(found.Hits.Total.Value, 10)
		expect(sizeOf(found.Hits.Hits[0].Source_), 93)
		expect(ask(es.Count().Index("fs").Query(termOf("name", "n3")).Do(ctx)).Count, 10)
		field := "name"
		named := ask(es.Search().Index("fs").Size(0).Aggregations(map[string]types.Aggregations{
			"names": {Terms: &types.TermsAggregation{Field: &field}}}).Do(ctx))
		expect(len(named.Aggregations["names"].(*types.StringTermsAggregate).Buckets.([]types.StringTermsBucket)), 10)
	}},
	{"scrolls", func() {
		makeIndex()
		fill(250)
		first := ask(es.Search().Index("fs").Scroll("1m").Size(100).Do(ctx))
		id, hits, seen := first.ScrollId_, first.Hits.Hits, 0
		for len(hits) > 0 {
			seen += len(hits)
			next := ask(es.Scroll().ScrollId(*id).Scroll("1m").Do(ctx))
			id, hits = next.ScrollId_, next.Hits.Hits
		}
		expect(seen, 250)
		expect(ask(es.ClearScroll().ScrollId(*id).Do(ctx)).Succeeded, true)
	}},
	{"by query", func() {
		makeIndex()
		fill(100)
		source := "ctx._source.size = 0"
		updated := ask(es.UpdateByQuery("fs").Query(termOf("name", "n3")).Script(&types.Script{Source: &source}).Do(ctx))
		expect(*updated.Updated, 10)
		expect(*ask(es.DeleteByQuery("fs").Query(termOf("size", 0)).Do(ctx)).Deleted, 11)
	}},
	{"locks", func() {
		session := native("POST", "/_session", map[string]any{"ttl": "1m"})["session"].(string)
		native("POST", "/_lock", map[string]any{"session": session, "locks": []any{map[string]string{"mode": "exclusive", "index": "fs"}}})
		refused(es.Index("fs").Id("1").Request(file{Size: 1}).Timeout("0s").Do(ctx))(409, "lock_wait_timeout_exception")
		ask(es.Index("fs").Id("1").Request(file{Size: 1}).Header("Tidelock-Session", session).Do(ctx))
		native("POST", "/_unlock", map[string]string{"session": session})
	}},
	{"catalog", func() {
		makeIndex()
		ask(es.Indices.PutAlias("fs", "files").Do(ctx))
		expect(len(ask(es.Indices.GetAlias().Name("files").Do(ctx))), 1)
		expect(len(ask(es.Indices.GetMapping().Index("fs").Do(ctx))["fs"].Mappings.Properties), 2)
		expect(ask(es.Cluster.Health().Do(ctx)).Status.String(), "yellow") // the index has a replica, and there is one node
		ask(es.Info().Do(ctx))
		ask(es.Indices.Stats().Do(ctx))
		ask(es.Nodes.Stats().Do(ctx))
		ask(es.Nodes.Info().Do(ctx))
		ask(es.Cluster.Stats().Do(ctx))
		ask(es.Indices.GetSettings().Do(ctx))
		ask(es.Tasks.List().Do(ctx))
		ask(es.Cat.Indices().Do(ctx))
	}},
}

func run(name string, run func()) (ok bool) {
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Printf("go-8 %s: FAILED\n%v\n", name, failure)
		}
	}()
	ask(es.Indices.Delete("*").Do(ctx))
	run()
	fmt.Printf("go-8 %s: ok\n", name)
	return true
}

func main() {
	es = ask(elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{os.Args[1]}}))
	failed := 0
	for _, each := range cases {
		if !run(each.name, each.run) {
			failed = 1
		}
	}
	os.Exit(failed)
}
