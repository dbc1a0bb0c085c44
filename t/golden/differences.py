"""Where our answers differ from the reference server's on purpose: by case, the reason, a heading in docs/differences.md,
and what our answer is.

What is said of an answer replaces that of the recorded one: status, headers (None: not there), body (text) or events;
the rest is as recorded.  An entry with a condition holds for servers that have (or have not) a kernel or a variable."""

import json
import re

EVERY_ANSWER = "More headers"           # compare.py: HEADERS, STREAM_HEADERS

ENVIRONMENT = "Environment variables"
DIRECTORIES = "Working directories"
LANGUAGES = "Unknown languages"
JSON_ERRORS = "What is wrong with a request's JSON"
ALLOW = "The Allow header"
REDIRECTS = "Redirects"
MALFORMED = "Malformed HTTP"
NO_DOCS = "No /docs and /openapi.json"
RESULTS = "Results of Python"
JAVASCRIPT = "JavaScript and TypeScript"
BASH = "Bash"

TEXT = "text/plain; charset=utf-8"
TEST_VARIABLE = "E2B_TEST_VARIABLE"     # the reference sets it in every context
NOT_FOUND = '{"detail":"Not Found"}'

NGINX_400 = "<html>\r\n<head><title>400 Bad Request</title></head>\r\n<body>\r\n" \
    "<center><h1>400 Bad Request</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"


class Difference:
    def __init__(self, reason, has=None, lacks=None, **change):
        self.reason = reason
        self.has = has
        self.lacks = lacks
        self.change = change

    def holds(self, there):
        return (self.has is None or self.has in there) and (self.lacks is None or self.lacks not in there)

    def says(self, recorded, kernels):
        """What changes; a function is asked about the recorded body and the kernels that there are."""
        return {k: v(recorded, kernels) if callable(v) else v for k, v in self.change.items()}


def refused(text, **headers):
    """A 400 in words; {kernels} in them: the names that the server itself gives."""
    def body(recorded, kernels):
        return text.replace("{kernels}", ", ".join(kernels))
    return {"status": "400 Bad Request", "headers": {"content-type": TEXT, **headers}, "body": body}


def no_kernel(language, **headers):
    return refused("There is no kernel for the language %s here, choose one of: {kernels}" % language, **headers)


# Of a stream, which a refusal is not.
NO_STREAM = {"transfer-encoding": None, "cache-control": None, "x-accel-buffering": None}


def json_error(position, words):
    detail = {"type": "json_invalid", "loc": ["body", position], "msg": "JSON decode error", "input": {},
              "ctx": {"error": words}}
    return json.dumps({"detail": [detail]}, separators=(",", ":"))


def result(text, count=2):
    return events({"type": "result", "text": text, "extra": {}, "is_main_result": True}, count=count)


def events(*between, count=2):
    return [{"type": "number_of_executions", "execution_count": count}, *between, {"type": "end_of_execution"}]


def stream(name, text):
    return {"type": name, "text": text, "timestamp": "TIMESTAMP"}


def error(name, value, traceback):
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


def without_first_lines(n):
    """The recorded events, with a traceback as it is without n lines pasted in front of the code."""
    def lift(recorded, kernels):
        lines = [json.loads(line) for line in recorded.splitlines()]
        for event in lines:
            if event["type"] == "error":
                event["traceback"] = lift_traceback(event["traceback"], n)
        return lines
    return lift


def lift_traceback(text, n):
    lines = []
    for line in text.split("\n"):
        line = re.sub(r"\bline (\d+)", lambda m: "line %d" % (int(m[1]) - n), line)
        m = re.match(r"((?:\x1b\[[\d;]*m)?(?:-+>| ) *)(\d+)(?=\D)", line)
        if m:
            if int(m[2]) <= n:
                continue
            line = m[1] + str(int(m[2]) - n) + line[m.end():]
        lines.append(line)
    return "\n".join(lines)


def counted(count):
    """The recorded events with another execution count."""
    def change(recorded, kernels):
        lines = [json.loads(line) for line in recorded.splitlines()]
        return [{**e, "execution_count": count} if e["type"] == "number_of_executions" else e for e in lines]
    return change


NO_DIRECTORY = "The working directory /no/such/dir does not exist or cannot be entered"

DIFFERENCES = {
    "env_vars_first_exec": [
        Difference(ENVIRONMENT, lacks=TEST_VARIABLE, body=lambda recorded, _: recorded.replace("'true'", "None"))],

    # The reference pastes assignments in front of the code.
    "env_vars_backslash_newline": [Difference(ENVIRONMENT, events=result("a\\\\nb"))],
    "env_vars_quote_in_value": [Difference(ENVIRONMENT, events=result("1"))],
    "env_vars_two_then_error_line": [Difference(ENVIRONMENT, events=without_first_lines(2))],
    "first_exec_error_line_numbers": [Difference(ENVIRONMENT, events=without_first_lines(2))],

    "http_contexts_create_bad_cwd_python": [Difference(DIRECTORIES, **refused(NO_DIRECTORY))],
    "http_contexts_create_bad_cwd_bash": [
        Difference(DIRECTORIES, has="bash", **refused(NO_DIRECTORY)),
        Difference(LANGUAGES, lacks="bash", **no_kernel("bash"))],
    "http_contexts_create_bad_cwd_js": [
        Difference(DIRECTORIES, has="javascript", **refused(NO_DIRECTORY)),
        Difference(JAVASCRIPT, lacks="javascript", **no_kernel("javascript"))],

    "http_contexts_create_unknown_language": [Difference(LANGUAGES, **no_kernel("cobol"))],
    "http_execute_unknown_language": [Difference(LANGUAGES, **no_kernel("cobol"))],
    "http_execute_java_absent_here": [Difference(LANGUAGES, lacks="java", **no_kernel("java"))],

    "http_contexts_create_bad_json": [
        Difference(JSON_ERRORS, body=json_error(1, "string or '}' expected near end of file"))],
    "http_execute_bad_json": [Difference(JSON_ERRORS, body=json_error(9, "unexpected token near end of file"))],
    "http_execute_bad_json_single_quotes": [
        Difference(JSON_ERRORS, body=json_error(2, "string or '}' expected near '''"))],
    "http_execute_bad_json_trailing": [
        Difference(JSON_ERRORS, body=json_error(15, "end of file expected near 'x'"))],

    "http_contexts_put_405": [Difference(ALLOW, headers={"allow": "GET, POST"})],

    "http_contexts_restart_slash": [Difference(REDIRECTS, headers={"location": "/contexts/abc/restart"})],
    "http_health_slash": [Difference(REDIRECTS, headers={"location": "/health"})],

    "http_bad_content_length": [Difference(MALFORMED, headers={"content-type": "text/html"}, body=NGINX_400)],
    "http_malformed_request": [Difference(MALFORMED, headers={"content-type": "text/html"}, body=NGINX_400)],

    "http_docs": [Difference(NO_DOCS, status="404 Not Found", headers={"content-type": "application/json"},
                             body=NOT_FOUND)],
    "http_openapi": [Difference(NO_DOCS, status="404 Not Found", body=NOT_FOUND)],

    # A kernel of our own in place of ijavascript: no count for a line of its own, no colours, other stacks.
    "http_contexts_create_js_alias": [Difference(JAVASCRIPT, lacks="javascript", **no_kernel("javascript"))],
    "http_contexts_create_ts": [Difference(JAVASCRIPT, lacks="typescript", **no_kernel("typescript"))],
    "http_execute_language_js_alias": [
        Difference(JAVASCRIPT, has="javascript", events=result("1", "COUNT")),
        Difference(JAVASCRIPT, lacks="javascript", **no_kernel("javascript", **NO_STREAM))],
    "js_await_import": [Difference(JAVASCRIPT, events=counted(2))],
    "js_env_vars": [Difference(JAVASCRIPT, events=counted(2))],
    "js_error": [Difference(JAVASCRIPT, events=events(error("Error", "x", "Error: x\n    at <anonymous>:1:7")))],
    "js_html": [Difference(JAVASCRIPT, events=counted(2))],
    "js_log": [Difference(JAVASCRIPT, events=counted(2))],
    "js_object": [Difference(JAVASCRIPT, events=counted(2))],
    "js_string": [Difference(JAVASCRIPT, events=counted(2))],
    "js_syntax_error": [Difference(JAVASCRIPT, events=events(error(
        "SyntaxError", "Unexpected token ';' (1:7)",
        "<anonymous>:1:7\nlet = ;\n      ^\n\nSyntaxError: Unexpected token ';'")))],
    "ts_types": [Difference(JAVASCRIPT, events=counted(2))],

    # The same for metakernel.
    "bash_exit_code": [Difference(BASH, events=events(error("ExitError", "1", "")))],
    "bash_stderr": [Difference(BASH, events=events(stream("stderr", "e\n")))],
}

# Debian 12's recording was made without the reference's start-up files, and without PIL.  With them, these answers are
# those of Debian 13's recording, and errors have no colours: in the one that is too long to be recorded as a whole,
# they are all in the part that is not.
RICH = ("dict_result", "empty_dict_result", "empty_list_result", "list_result", "long_list_not_truncated")
JPEG = "jpeg"
LONG_ERROR, COLOURS = "error_long_value", 298
COLOUR = re.compile(r"\\u001b\[[\d;]*m")


def with_start_up_files(case, rich):
    """A case of Debian 12's recording as if it had been made with them; rich: the cases of Debian 13's, by name."""
    if case.name in RICH:
        return rich[case.name]
    if case.name == JPEG:               # that IPython ends base64 with a newline
        return case.answered(body=rich[case.name].recorded["body"].replace('", "extra"', '\\n", "extra"'))
    if case.name == LONG_ERROR:
        return case.answered(body_length=case.recorded["body_length"] - COLOURS)
    if case.python and not case.big:
        return case.answered(body="".join(
            COLOUR.sub("", line) if line.startswith('{"type": "error"') else line
            for line in case.recorded["body"].splitlines(True)))
    return case


REASONS = sorted({EVERY_ANSWER, RESULTS} | {d.reason for ds in DIFFERENCES.values() for d in ds})


def find(name, recorded, kernels, variables):
    """(reason, what changes) of a case, or (None, None)."""
    for difference in DIFFERENCES.get(name, []):
        if difference.holds(kernels + variables):
            return difference.reason, difference.says(recorded, kernels)
    return None, None
