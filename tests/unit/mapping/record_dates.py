#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a running Elasticsearch 7.10 which texts are dates of which formats, for dates.tsv.

    tests/unit/mapping/record_dates.py http://127.0.0.1:9207 >tests/unit/mapping/dates.tsv

A document is a text in one field for each format, with ignore_malformed. A line of the table is a text, and for each value
that it has the milliseconds and the formats that read it so. A line "# printed" has a format, milliseconds and
how they are shown. Formats of years of weeks are left out, since 7.10 reads nothing by them, and so are texts by which
7.10 loses the year or the time (docs/compatibility.md).
"""
import json
import sys
import urllib.request

BASE = """basic_date basic_date_time basic_date_time_no_millis basic_ordinal_date basic_ordinal_date_time
basic_ordinal_date_time_no_millis basic_t_time basic_t_time_no_millis basic_time basic_time_no_millis date_optional_time
iso8601 strict_date_optional_time_nanos epoch_millis epoch_second
strict_date_optional_time||epoch_millis date||epoch_millis""".split()
BOTH = """basic_week_date basic_week_date_time basic_week_date_time_no_millis date date_hour date_hour_minute
date_hour_minute_second date_hour_minute_second_fraction date_hour_minute_second_millis date_time date_time_no_millis hour
hour_minute hour_minute_second hour_minute_second_fraction hour_minute_second_millis ordinal_date ordinal_date_time
ordinal_date_time_no_millis t_time t_time_no_millis time time_no_millis week_date week_date_time week_date_time_no_millis
weekyear_week_day year year_month year_month_day""".split()
FORMATS = BASE + BOTH + ["strict_" + name for name in BOTH] + ["strict_date_optional_time"]

ZONES = ["Z", "+01:00", "+0100", "+01", "+1", "+01:00:30", "UTC", "UTC+01:00", "GMT", "UT", "z", "-0000", "+18:01", "+18:00", "ZZ", "x"]
DATES = ["2022-03-04", "2022-3-4", "2022-03", "2022-3", "2022", "22-03-04", "2-3-4", "22022-03-04", "222022-03-04", "+2022-03-04",
         "+22022-03-04", "-2022-03-04", "-22-03-04", "0000-03-04", "-0000-03-04", "2022-02-29", "2022-02-30", "2022-02-32", "2022-13-01", "2022-00-01", "2022-03-00",
         "2022-003-004", "2022-03-", "2022-", "", "2022-03-04 ", " 2022-03-04", "2022/03/04"]
YEARS = ["1", "12", "123", "1234", "12345", "123456", "1234567", "12345678", "123456789", "1234567890", "12345678901", "123456789012",
         "1234567890123", "+12345", "+1234", "+123456789", "-1", "-123", "-12345", "-123456789", "0", "00000", "0000", "1234.5",
         "12345.678", "12345.1234567"]
ORDINALS = ["2022-063", "2022-63", "2022-3", "2022-365", "2022-366", "2020-366", "2022-000", "22-063", "+12345-063", "12345-063", "2022063", "202263",
            "2022366", "+12345063", "-2022063", "0000063"]
WEEKS = ["2022-W09-5", "2022-W9-5", "2022-w09-5", "2022-W53-1", "2020-W53-1", "2022-W00-1", "2022-W54-1", "2022-W09-8", "2022-W09-0", "2022-W09", "2022-W9", "22-W09-5", "+12345-W09-5",
         "2022W095", "2022W95", "2022W0955", "22W095", "2022W098", "-2022-W09-5", "2022-W009-05", "2022-W53"]
BASIC = ["20220304", "2022034", "202234", "2234", "220304", "020220304", "-20220304", "+20220304", "20220230", "20221304", "+120220304"]
TIMES = ["05:06:07.089", "5:6:7.089", "05:06:07.08", "05:06:07.0", "05:06:07.", "05:06:07.0891", "05:06:07.089123456", "05:06:07.0891234567", "05:06:07,089",
         "05:06:07", "5:6:7", "05:06:60", "05:06", "5:6", "05:60", "05", "5", "24", "24:00", "24:00:00", "23", "05.5", "005", "-5", "05:06:", "05:"]
BASIC_TIMES = ["050607.089", "050607.0", "050607", "50607", "0506", "050607.0891234567"]


def texts():
    yield from DATES + YEARS + ORDINALS + WEEKS + BASIC + TIMES + BASIC_TIMES
    for time in TIMES + BASIC_TIMES:
        for zone in ["", "Z"]:
            for day in ["2022-03-04", "", "2022-063", "2022-W09-5"] if ":" in time or len(time) < 3 else \
                    ["20220304", "2022063", "", "2022W095"]:
                yield day + "T" + time + zone
    for zone in ZONES:
        for time in ["05:06:07.089", "05:06:07", "05:06", "05"]:
            yield "2022-03-04T" + time + zone
            yield time + zone
        yield "2022-063T05:06:07.089" + zone
        yield "2022-W09-5T05:06:07" + zone
        yield "20220304T050607.089" + zone
        yield "T050607" + zone
        yield "T05:06:07.5" + zone
        yield "2022-03-04" + zone
        yield "2022-03-04T" + zone
    for day in ["2022-3-4", "2022-03", "22-3-4", "22022-03-04", "+22022-03-04", "-2022-03-04", "0000-03-04", "2022-02-30", "2022-13-01"]:
        for time in ["05", "05:06", "05:06:07", "05:06:07.089", "05:06:07.089Z", "05:06:07Z", "05:06Z"]:
            yield day + "T" + time
    for day in ["2022-63", "2022-366", "22-063", "2022-W9-5", "2022-w09-5", "2022-W09"]:
        for time in ["05:06Z", "05:06:07.089Z", "05:06:07Z", "5:6:7Z"]:
            yield day + "T" + time
    for day in ["2022366", "202263", "0000063", "2022W95", "20220230", "202234"]:
        for time in ["050607.089Z", "050607Z"]:
            yield day + "T" + time


def ask(base, method, path, body=None, lines=None):
    data = lines.encode() if lines is not None else json.dumps(body).encode() if body is not None else None
    kind = "application/x-ndjson" if lines is not None else "application/json"
    request = urllib.request.Request(base + path, data=data, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def main():
    base = sys.argv[1]
    rows = list(dict.fromkeys(texts()))
    try:
        ask(base, "DELETE", "/dates")
    except urllib.error.HTTPError:
        pass
    fields = {f"f{n}": {"type": "date", "format": name, "ignore_malformed": True} for n, name in enumerate(FORMATS)}
    ask(base, "PUT", "/dates", {"settings": {"index.max_docvalue_fields_search": 200, "index.number_of_replicas": 0}, "mappings": {"properties": {**fields, "shown": {"type": "date"}}}})
    bulk = "".join(json.dumps({"index": {"_id": str(n)}}) + "\n" + json.dumps(dict.fromkeys(fields, text)) + "\n"
                   for n, text in enumerate(rows))
    reply = ask(base, "POST", "/dates/_bulk?refresh=true", lines=bulk)
    refused = {item["index"]["_id"]: item["index"]["error"] for item in reply["items"] if "error" in item["index"]}
    print("refused", {rows[int(k)]: v.get("caused_by", v) for k, v in refused.items()}, file=sys.stderr)
    found = {}
    for start in range(0, len(FORMATS), 50):
        body = {"size": 10000, "_source": False,
                "docvalue_fields": [{"field": f"f{n}", "format": "epoch_millis"} for n in range(start, min(start + 50, len(FORMATS)))]}
        for hit in ask(base, "POST", "/dates/_search", body)["hits"]["hits"]:
            for field, values in hit.get("fields", {}).items():
                found.setdefault(int(hit["_id"]), {}).setdefault(values[0], []).append(FORMATS[int(field[1:])])
    print("# Written by record_dates.py from 7.10: a text, then each value it has with the formats that read it so.")
    print("# formats:", *FORMATS)
    for millis in [1646370367089, 1609632000000]:
        ask(base, "PUT", "/dates/_doc/0?refresh=true", {"shown": millis})
        for name in FORMATS:
            hit = ask(base, "POST", "/dates/_search", {"query": {"ids": {"values": ["0"]}}, "docvalue_fields": [{"field": "shown", "format": name}]})
            print("# printed", name, millis, hit["hits"]["hits"][0]["fields"]["shown"][0])
    for n, text in enumerate(rows):
        if str(n) in refused:
            continue
        values = found.get(n, {})
        print(json.dumps(text)[1:-1] + "".join(f"\t{value} {' '.join(values[value])}" for value in sorted(values, key=int)))


if __name__ == "__main__":
    main()
