# SPDX-License-Identifier: Apache-2.0
"""Histories of transactions over lists, and whether they are strictly serializable.

A history is what elle-cli's model list-append takes: a list of events {"index", "process", "type", "time", "value"}, where type
is invoke, ok, fail (it did not happen) or info (not known), and value a list of ["append", key, element] and
["r", key, list]. Each element is appended to its key once at most, so a list shows the order of its writers.

The rules are those of Adya's dependencies, as Elle (Kingsbury and Alvaro, VLDB 2020) draws them from such histories:
one transaction appended directly before another (ww), read an element of another (wr), did not read it yet (rw), or
that one had ended before another began (time). A cycle of these is an impossible order.
"""


class Anomaly(Exception):
    pass


class Transaction:
    def __init__(self, invoke, end):
        self.process = invoke["process"]
        self.invoked = invoke["index"]
        self.ended = end["index"] if end is not None and end["type"] != "info" else None
        self.state = end["type"] if end is not None else "info"
        self.operations = end["value"] if self.state == "ok" else invoke["value"]
        self.name = "%s at %d" % (invoke["process"], invoke["index"])

    def appends(self):
        return [(key, element) for kind, key, element in self.operations if kind == "append"]

    def reads(self):
        """Returns: (key, list) of the previous values: own appends, which must be at the end, are removed."""
        own, seen = {}, []
        for kind, key, value in self.operations:
            if kind == "append":
                own.setdefault(key, []).append(value)
                continue
            value, mine = value or [], own.get(key, [])
            if mine and value[-len(mine):] != mine:
                raise Anomaly("%s does not see its own appends to %s: %s" % (self.name, key, value))
            seen.append((key, value[:len(value) - len(mine)]))
        first = {}
        for key, value in seen:
            if first.setdefault(key, value) != value:
                raise Anomaly("%s read %s twice: %s, then %s" % (self.name, key, first[key], value))
        return list(first.items())


def transactions(events):
    """Pairs the beginning of each operation with its outcome."""
    under_way, found = {}, []
    for event in events:
        if event["type"] == "invoke":
            under_way[event["process"]] = event
        else:
            found.append(Transaction(under_way.pop(event["process"]), event))
    return found + [Transaction(event, None) for event in under_way.values()]


def writers_of(all_transactions):
    writers = {}
    for transaction in all_transactions:
        for key, element in transaction.appends():
            if (key, element) in writers:
                raise ValueError("%s is appended to %s twice: no history of this kind" % (element, key))
            writers[key, element] = transaction
    return writers


def orders(committed, writers):
    """Returns: for each key the longest list read, of which all others must be beginnings."""
    longest = {}
    for transaction in committed:
        for key, value in transaction.reads():
            known = longest.setdefault(key, value)
            shorter, longer = sorted((known, value), key=len)
            if longer[:len(shorter)] != shorter:
                raise Anomaly("%s: %s read %s, another %s" % (key, transaction.name, value, known))
            longest[key] = longer
    for key, value in longest.items():
        if len(set(value)) != len(value):
            raise Anomaly("%s has an element twice: %s" % (key, value))
        for element in value:
            if (key, element) not in writers:
                raise Anomaly("%s: no transaction appended %s" % (key, element))
            if writers[key, element].state == "fail":
                raise Anomaly("%s: %s was appended by %s, which failed" % (key, element, writers[key, element].name))
    return longest


def check_whole(committed, writers):
    """A list that was read ends where a transaction's appends end."""
    for transaction in committed:
        for key, value in transaction.reads():
            if not value:
                continue
            writer = writers[key, value[-1]]
            if [element for other, element in writer.appends() if other == key][-1] != value[-1]:
                raise Anomaly("%s read %s of %s in the middle of %s" % (transaction.name, value, key, writer.name))


def dependencies(committed, writers, longest):
    """Yields (from, kind, to)."""
    for key, value in longest.items():
        for before, after in zip(value, value[1:]):
            yield writers[key, before], "ww", writers[key, after]
    for transaction in committed:
        for key, value in transaction.reads():
            if value:
                yield writers[key, value[-1]], "wr", transaction
            whole = longest[key]
            if len(value) < len(whole):
                yield transaction, "rw", writers[key, whole[len(value)]]


def real_time(committed, precede):
    """
    Yields edges over points in time, one an end, so that their number grows with that of the transactions only.
    precede(transaction): whether it precedes those that begin after its end.
    """
    instants = sorted([(t.invoked, 1, t) for t in committed] + [(t.ended, 0, t) for t in committed if t.ended is not None and precede(t)],
                     key=lambda instant: instant[:2])
    point = None
    for index, begins, transaction in instants:
        if begins:
            if point is not None:
                yield point, "time", transaction
            continue
        following = ("time", index)
        yield transaction, "time", following
        if point is not None:
            yield point, "time", following
        point = following


def find_cycle(edges):
    """Returns: a cycle as a list of (node, kind), or None. Depth first, without recursion."""
    following = {}
    for source, kind, target in edges:
        if source is not target:
            following.setdefault(source, []).append((kind, target))
    done = set()
    for start in list(following):
        if start in done:
            continue
        path, places, ways = [(start, None)], {start: 0}, [iter(following.get(start, ()))]
        while path:
            step = next(ways[-1], None)
            if step is None:
                node, _ = path.pop()
                ways.pop()
                del places[node]
                done.add(node)
                continue
            kind, target = step
            if target in places:
                return path[places[target]:] + [(target, kind)]
            if target not in done:
                places[target] = len(path)
                path.append((target, kind))
                ways.append(iter(following.get(target, ())))
    return None


def describe(cycle):
    words = []
    for node, kind in cycle:
        name = node.name if isinstance(node, Transaction) else "later"
        words.append(name if not words else "-%s-> %s" % (kind, name))
    return " ".join(words)


def times(committed, order):
    """Yields the edges of time that `order` wants; see check()."""
    if order == "clients":
        for process in {t.process for t in committed}:
            yield from real_time([t for t in committed if t.process == process], lambda t: True)
    else:
        yield from real_time(committed, lambda t: order == "all" or bool(t.appends()))


def check(events, order="all"):
    """
    Raises Anomaly unless the history is serializable in an order that agrees with time as `order` says:

    all         a transaction that began after another had ended follows it: strictly serializable
    writers     only if the earlier transaction appended: its appends are seen
    clients     only if both are of the same process

    Returns: how many transactions took part.
    """
    every = transactions(events)
    writers = writers_of(every)
    committed = [t for t in every if t.state == "ok"]
    longest = orders(committed, writers)
    seen = {id(writers[key, element]) for key, value in longest.items() for element in value}
    committed += [t for t in every if t.state == "info" and id(t) in seen]
    for transaction in committed:
        if transaction.state == "info":  # it happened; its reads are unknown
            transaction.operations = [operation for operation in transaction.operations if operation[0] == "append"]
    check_whole(committed, writers)
    edges = list(dependencies(committed, writers, longest)) + list(times(committed, order))
    cycle = find_cycle(edges)
    if cycle is not None:
        raise Anomaly("a cycle: " + describe(cycle))
    return len(committed)
