"""Drives `foldline rpc` over its standard input and output, and prints what it saw as one JSON document."""

import json
import subprocess
import sys
import threading
import time

# The tree of a session is nested as deep as the session is long.
sys.setrecursionlimit(100_000)
threading.stack_size(256 << 20)


class Client:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = []
        self.changed = threading.Condition()
        self.next_id = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.changed:
                self.lines.append((time.monotonic(), message))
                self.changed.notify_all()

    def send(self, kind, **arguments):
        self.next_id += 1
        request = {"id": self.next_id, "type": kind, **arguments}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return self.next_id

    def wait(self, fits, limit=60):
        deadline = time.monotonic() + limit
        with self.changed:
            while True:
                for at, message in self.lines:
                    if fits(message):
                        return at, message
                rest = deadline - time.monotonic()
                if rest <= 0 or not self.changed.wait(rest):
                    raise TimeoutError(json.dumps([message for _, message in self.lines])[-4000:])

    def answer(self, request):
        return self.wait(lambda message: message["type"] == "response" and message.get("id") == request)

    def call(self, kind, **arguments):
        return self.answer(self.send(kind, **arguments))[1]

    def event(self, kind):
        return self.wait(lambda message: message["type"] == kind)

    def forget(self):
        with self.changed:
            self.lines.clear()

    def order(self):
        with self.changed:
            return [
                message.get("command", message["type"]) if message["type"] == "response" else message["type"]
                for _, message in self.lines
            ]

    def close(self):
        self.process.stdin.close()
        return self.process.wait(60)


def outline(answer):
    """The tree without its depth, which not every reader of JSON takes."""
    nodes = list(answer["data"]["tree"])
    first = nodes[0]["entry"]["id"]
    count = 0
    while nodes:
        count += 1
        nodes.extend(nodes.pop()["children"])
    return {"success": answer["success"], "data": {"first": first, "count": count}}


def commands(client):
    """One of each kind of command, in an order that a client might choose."""
    seen = {}

    def call(kind, **arguments):
        seen[kind] = client.call(kind, **arguments)
        return seen[kind]

    call("get_state")
    call("set_session_name", name="Leases")
    entries = client.call("get_entries")["data"]["entries"]
    seen["get_entries"] = call("get_entries", since=entries[-3]["id"])
    messages = [entry for entry in entries if entry["type"] == "message"]
    call("get_messages")
    call("get_last_assistant_text")
    call("get_session_stats")
    seen["get_tree"] = outline(client.call("get_tree"))
    call("set_label", entryId=messages[1]["id"], label="here")
    call("get_fork_messages")
    call("set_auto_compaction", enabled=False)
    call("set_auto_retry", enabled=False)
    call("pause_queued_messages")
    call("steer", message="left")
    call("follow_up", message="then right")
    call("clear_queue")
    call("resume_queued_messages")
    call("abort")
    call("abort_compaction")
    call("abort_retry")
    call("navigate_tree", targetId=messages[1]["id"])
    call("prompt", message="Say yes.")
    client.event("agent_settled")
    seen["answer"] = client.call("get_last_assistant_text")
    call("clone")
    typed = client.call("get_fork_messages")["data"]["messages"]
    call("fork", entryId=typed[-1]["entryId"])
    call("handoff")
    call("new_session")
    call("switch_session", sessionPath=sys.argv[2])
    call("get_state")
    seen["unknown"] = client.call("dance")
    client.process.stdin.write(b"{nonsense\n")
    client.process.stdin.flush()
    seen["parse"] = client.wait(lambda message: message.get("command") == "parse")[1]
    return seen


def abort_in_compact(client):
    """An abort while a compaction waits for its model; a prompt behind the compaction waits for its turn."""
    compact = client.send("compact")
    client.event("compaction_start")
    state = client.send("get_state")
    time.sleep(0.2)
    before = client.order()
    asked = time.monotonic()
    client.send("abort_compaction")
    ended, answer = client.answer(compact)
    client.answer(state)
    return {"ms": (ended - asked) * 1000, "answer": answer, "before": before, "after": client.order()}


def abort_behind_compact(client):
    """An abort that is sent in one write with the compaction that it is meant for."""
    client.forget()
    lines = [{"id": "c", "type": "compact"}, {"id": "a", "type": "abort_compaction"}]
    client.process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    client.process.stdin.flush()
    return client.answer("c")[1]


def main():
    client = Client(sys.argv[3:])
    scenario = {"commands": commands, "abort": abort_in_compact, "behind": abort_behind_compact}[sys.argv[1]]
    seen = scenario(client)
    print(json.dumps({"seen": seen, "code": client.close()}))


main()
