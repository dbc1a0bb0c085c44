# POST /execute: what it takes and what it answers.

use FindBin;
use lib "$FindBin::Bin/lib";
use KexecTest;
use Test::Nginx::Socket 'no_plan';

# the texts of debug logs are code, too

log_level('debug');

our $Time = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00/;

KexecTest::setup();
run_tests();

__DATA__

=== TEST 1: a stream
--- request
POST /execute
{"code": "print hello"}
--- more_headers
Content-Type: application/json
--- response_headers
Content-Type: application/x-ndjson
Cache-Control: no-store
X-Accel-Buffering: no
Transfer-Encoding: chunked
! Content-Length
! Accept-Ranges
! ETag
! Last-Modified
--- response_body_like eval
qr/\A\{"type": "number_of_executions", "execution_count": 1\}
\{"type": "stdout", "text": "hello\\n", "timestamp": "$::Time"\}
\{"type": "end_of_execution"\}
\z/



=== TEST 2: results, displays and stderr
--- request
POST /execute
{"code": "stderr oops\ndisplay {\"text/plain\": \"'d'\", \"text/x-other\": 1}\nresult {\"image/png\": \"cA==\", \"text/plain\": \"r\"}"}
--- more_headers
Content-Type: application/json
--- response_body_like eval
qr/\A\{"type": "number_of_executions", "execution_count": 1\}
\{"type": "stderr", "text": "oops\\n", "timestamp": "$::Time"\}
\{"type": "result", "text": "d", "extra": \{"text\/x-other": 1\}, "is_main_result": false\}
\{"type": "result", "text": "r", "png": "cA==", "extra": \{\}, "is_main_result": true\}
\{"type": "end_of_execution"\}
\z/



=== TEST 3: an error ends a stream of status 200
--- request
POST /execute
{"code": "error NameError no such name"}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like eval
qr/\A\{"type": "number_of_executions", "execution_count": 1\}
\{"type": "error", "name": "NameError", "value": "no such name", "traceback": ".*"\}
\{"type": "end_of_execution"\}
\z/



=== TEST 4: no code
--- request
POST /execute
{"code": ""}
--- more_headers
Content-Type: application/json
--- response_body
{"type": "number_of_executions", "execution_count": 1}
{"type": "end_of_execution"}



=== TEST 5: everything is ASCII, and text is what it was
--- request eval
qq(POST /execute\n{"code": "print \xc3\xa9 \xf0\x9f\x8e\x89 \\u2028 \\u007f \\"q\\" \\\\"})
--- more_headers
Content-Type: application/json
--- response_body_like eval
qr/\A.*
\{"type": "stdout", "text": "\\u00e9 \\ud83c\\udf89 \\u2028 \\u007f \\"q\\" \\\\\\n", .*
\{"type": "end_of_execution"\}
\z/



=== TEST 6: bytes that no JSON library lets pass
--- request
POST /execute
{"code": "print \"a\\u0000\\ud800b\"\nresult {\"application/json\": 123456789012345678901234567890.10}\nnan"}
--- more_headers
Content-Type: application/json
--- response_body_like eval
qr/\A.*
\{"type": "stdout", "text": "a\\u0000\\ud800b", .*
\{"type": "result", "json": 123456789012345678901234567890\.10, .*
\{"type": "result", [^N]*null[^N]*\}
\{"type": "end_of_execution"\}
\z/



=== TEST 7: keepalives, while the code runs and in the queue
--- location
kexec_keepalive 50ms;
--- before
my $running = execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
my $queued = execute(code => "sleep 0.5\nprint x");
seen($queued, qr/(keepalive(?s:.*)){2}/);
close $running;
like(KexecTest::read_answer($queued)->{body},
     qr/\A(\{"type": "keepalive"\}\n){2,}\{"type": "number_of_executions", "execution_count": 2\}
(\{"type": "keepalive"\}\n){2,}\{"type": "stdout", .*
(\{"type": "keepalive"\}\n)*\{"type": "end_of_execution"\}\n\z/, "twice and more");
--- request
GET /contexts
--- response_body_like: "language":"python"



=== TEST 8: the headers are there while it is queued
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
my $queued = execute(code => "print x");
like(seen($queued, qr/\r\n\r\n/), qr{^HTTP/1.1 200 OK\r\n}, "the status of what waits");
--- request
GET /contexts
--- response_body_like: "language":"python"



=== TEST 9: a body of either context_id or language
--- request
POST /execute
{"code": "print x", "context_id": "a", "language": "python"}
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body chomp
Only one of context_id or language can be provided



=== TEST 10: nulls and empty strings are as good as nothing
--- request eval
[qq(POST /execute\n{"code": "count", "context_id": null, "language": null, "env_vars": null, "timeout": null}),
 qq(POST /execute\n{"code": "count", "context_id": "", "language": ""}),
 qq(POST /execute\n{"code": "count", "language": " PYTHON ", "env_vars": {}}),
 qq(POST /execute\n{"code": "count", "context_id": "default", "more": [1]})]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[map { qr/"execution_count": $_\}(?s:.*)"end_of_execution"/ } 1 .. 4]



=== TEST 11: a context of one's own
--- context
{"language": "python"}
--- request eval
[qq(POST /execute\n{"code": "set a 1"}),
 qq(POST /execute\n{"code": "set a 2", "context_id": "\$CTX"}),
 qq(POST /execute\n{"code": "get a", "context_id": "\$CTX"}),
 qq(POST /execute\n{"code": "get a"})]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[qr/"execution_count": 1\}/, qr/"execution_count": 1\}/,
 qr/"execution_count": 2\}(?s:.*)"2\\n"/, qr/"execution_count": 2\}(?s:.*)"1\\n"/]



=== TEST 12: a language without a kernel
--- request eval
[qq(POST /execute\n{"code": "x", "language": "cobol"}),
 qq(POST /execute\n{"code": "x", "language": "a\\nb \\u00e9"})]
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body_like eval
[qr/^There is no kernel for the language cobol here, choose one of: \w+(, \w+)*$/,
 qr/^There is no kernel for the language /]



=== TEST 13: a language with a very long name
--- request eval
qq(POST /execute\n{"code": "x", "language": ") . "x" x 64 . qq("})
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_body chomp
The name of the language is too long



=== TEST 14: a context that is not there
--- request eval
[qq(POST /execute\n{"code": "x", "context_id": "no-such-context"}),
 qq(POST /execute\n{"code": "x", "context_id": "00000000-0000-4000-8000-000000000000"}),
 qq(POST /execute\n{"code": "x", "context_id": ") . "y" x 3000 . qq("})]
--- more_headers
Content-Type: application/json
--- error_code: 404
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body eval
["Context no-such-context not found",
 "Context 00000000-0000-4000-8000-000000000000 not found",
 "Context " . "y" x 3000 . " not found"]



=== TEST 15: variables that no environment can hold
--- request eval
[map { qq(POST /execute\n{"code": "x", "env_vars": $_}) }
 '{"A=B": "c"}', '{"": "c"}', '{"A": "\u0000"}']
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_body_like eval
[qr/^The environment variable "A=B" cannot be set: .*equals sign/,
 qr/^The environment variable "" cannot be set: .*is empty/,
 qr/^The environment variable "A" cannot be set: .*NUL character/]
--- after
is(scalar(grep { $_->{code} eq "x" } jupyter_log(ev => "execute")), 0,
   "nothing of it was run");



=== TEST 16: bodies that are not what they should be
--- request eval
my @bodies = ('', 'null', '[1]', '"x"', '{}', '{"code": null}',
              '{"code": 1, "language": []}', '{"code": "1", "context_id": 5}',
              '{"code": "1", "env_vars": ["A"]}',
              '{"code": "1", "env_vars": {"A": 1, "B": "b", "C": null}}');
[map { length ? "POST /execute\n$_" : "POST /execute" } @bodies]
--- more_headers
Content-Type: application/json
--- error_code: 422
--- response_headers
Content-Type: application/json
--- response_body eval
my $missing = '{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]}';
sub not_object { '{"detail":[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":' . $_[0] . '}]}' }
sub not_string { '{"type":"string_type","loc":["body",' . $_[0] . '],"msg":"Input should be a valid string","input":' . $_[1] . '}' }
sub detail { '{"detail":[' . CORE::join(",", @_) . ']}' }
[$missing, $missing, not_object('[1]'), not_object('"x"'),
 detail('{"type":"missing","loc":["body","code"],"msg":"Field required","input":{}}'),
 detail(not_string('"code"', 'null')),
 detail(not_string('"code"', '1'), not_string('"language"', '[]')),
 detail(not_string('"context_id"', '5')),
 detail('{"type":"dict_type","loc":["body","env_vars"],"msg":"Input should be a valid dictionary","input":["A"]}'),
 detail(not_string('"env_vars","A"', '1'), not_string('"env_vars","C"', 'null'))]



=== TEST 17: bodies that are no JSON
--- request eval
[map { qq(POST /execute\n$_) }
 '{"code": ', "{'code': '1'}", '{"code": "1"} x', '{"code": "1",}',
 '{"code": "1", "x": nan}', '{"code": "1", "x": [1e400,]}', qq(\xef\xbb\xbf\xef\xbb\xbf{"code": "1"}),
 qq({"code": "1"}\x00)]
--- more_headers
Content-Type: application/json
--- error_code: 422
--- response_body_like eval
qr/^\{"detail":\[\{"type":"json_invalid","loc":\["body",\d+\],"msg":"JSON decode error","input":\{\},"ctx":\{"error":".+"\}\}\]\}$/



=== TEST 18: timeouts that are none
--- request eval
[map { qq(POST /execute\n{"code": "1", "timeout": $_}) }
 0, -1, -0.5, '"1"', 'true', '[]']
--- more_headers
Content-Type: application/json
--- error_code: 422
--- response_body_like eval
[(qr/"type":"greater_than","loc":\["body","timeout"\],"msg":"Input should be greater than 0","input":/) x 3,
 (qr/"type":"float_type","loc":\["body","timeout"\],"msg":"Input should be a valid number","input":/) x 3]



=== TEST 19: a timeout
--- request
POST /execute
{"code": "print a\nsleep 30", "timeout": 0.2}
--- more_headers
Content-Type: application/json
--- response_body_like eval
qr/\A.*
\{"type": "stdout", "text": "a\\n", .*
\{"type": "error", "name": "ExecutionTimeout", "value": ".+", "traceback": ".*"\}
\{"type": "end_of_execution"\}
\z/



=== TEST 20: a timeout that is never reached
--- request
POST /execute
{"code": "print a", "timeout": 1e300}
--- more_headers
Content-Type: application/json
--- response_body_like: "text": "a\\n"(?s:.*)"end_of_execution"



=== TEST 21: types of content
--- request eval
[(qq(POST /execute\n{"code": "print a"})) x 6]
--- more_headers eval
["Content-Type: application/json; charset=utf-8", "Content-Type: application/vnd.api+json",
 "Content-Type: APPLICATION/JSON", "X: y", "Content-Type: text/plain", "Content-Type: application/jsonx"]
--- error_code eval
[200, 200, 200, 200, 422, 422]
--- response_body_like eval
[(qr/"end_of_execution"/) x 4, (qr/"input":"\{\\"code\\": \\"print a\\"\}"/) x 2]



=== TEST 22: other methods
--- request eval
["GET /execute", "PUT /execute\n{}", "DELETE /execute", "OPTIONS /execute", "PATCH /execute\n{}"]
--- error_code: 405
--- response_headers
Allow: POST
Content-Type: application/json
--- response_body eval
'{"detail":"Method Not Allowed"}'



=== TEST 23: HEAD
--- request
HEAD /execute
--- error_code: 405
--- raw_response_headers_like: ^HTTP/1\.1 405 Method Not Allowed\r\n
--- response_headers
Allow: POST
Content-Length: 31
--- response_body



=== TEST 24: code that is too long
--- location
kexec_max_code_size 1k;
--- request eval
qq(POST /execute\n{"code": ") . "x" x 1025 . qq("})
--- more_headers
Content-Type: application/json
--- error_code: 413
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body chomp
The code has 1025 bytes, 1024 are allowed (kexec_max_code_size)



=== TEST 25: a body that is too long
--- location
client_max_body_size 1k;
--- request eval
qq(POST /execute\n{"code": ") . "x" x 1025 . qq("})
--- more_headers
Content-Type: application/json
--- error_code: 413
--- response_body_like: 413 Request Entity Too Large
--- error_log
client intended to send too large body



=== TEST 26: a full queue
--- location
kexec_queue size=1;
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
seen(execute(code => "print x"), qr/\r\n\r\n/);
--- request
POST /execute
{"code": "print y"}
--- more_headers
Content-Type: application/json
--- error_code: 429
--- response_headers
Retry-After: 1
Content-Type: text/plain; charset=utf-8
--- response_body chomp
The context's queue is full, 1 executions are waiting, try again later



=== TEST 27: too long in the queue
--- location
kexec_queue timeout=200ms;
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request
POST /execute
{"code": "print y"}
--- more_headers
Content-Type: application/json
--- response_body_like eval
qr/\A\{"type": "error", "name": "QueueTimeout", "value": ".+", "traceback": ""\}
\{"type": "end_of_execution"\}
\z/



=== TEST 28: Jupyter is not there
--- before
jupyter("down", {});
--- request
POST /execute
{"code": "print y"}
--- more_headers
Content-Type: application/json
--- error_code: 503
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body_like: Jupyter
--- error_log
connect() failed (111: Connection refused)



=== TEST 29: Jupyter cannot make a kernel
--- jupyter
{"session_create": {"status": 500, "body": {"message": "no process left", "reason": null}}}
--- request
POST /execute
{"code": "print y"}
--- more_headers
Content-Type: application/json
--- error_code: 500
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body_like: no process left



=== TEST 30: the token is wrong
--- config
location / {
    kexec_pass http://jupyter;
    kexec_token wrong;
}
--- request
POST /execute
{"code": "print y"}
--- more_headers
Content-Type: application/json
--- error_code: 503
--- response_body_like: token



=== TEST 31: HTTP/1.0
--- raw_request eval
my $body = '{"code": "print hello"}';
"POST /execute HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body"
--- response_headers
Connection: close
! Transfer-Encoding
! Content-Length
--- response_body_like eval
qr/\A\{"type": "number_of_executions", "execution_count": 1\}
\{"type": "stdout", .*
\{"type": "end_of_execution"\}
\z/



=== TEST 32: a chunked body
--- raw_request eval
"POST /execute HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
. "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"code\"\r\n6;ext=1\r\n: \"pri\r\n6\r\nnt a\"}\r\n0\r\n\r\n"
--- response_body_like: "text": "a\\n"(?s:.*)"end_of_execution"



=== TEST 33: a body in many packets
--- raw_request eval
my $body = '{"code": "print hello"}';
["POST /execute HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
 . "Content-Length: " . length($body) . "\r\n\r\n{", substr($body, 1, 9), substr($body, 10)]
--- raw_request_middle_delay: 0.05
--- response_body_like: "text": "hello\\n"(?s:.*)"end_of_execution"



=== TEST 34: a body in a file
--- location
client_body_in_file_only clean;
--- request
POST /execute
{"code": "print hello"}
--- more_headers
Content-Type: application/json
--- response_body_like: "text": "hello\\n"(?s:.*)"end_of_execution"
--- error_log
a client request body is buffered to a temporary file



=== TEST 35: a body that is larger than its buffer
--- location
client_body_buffer_size 1k;
--- request eval
qq(POST /execute\n{"code": ") . "#" x 100000 . qq(\\nprint hello"})
--- more_headers
Content-Type: application/json
--- response_body_like: "text": "hello\\n"(?s:.*)"end_of_execution"
--- error_log
a client request body is buffered to a temporary file
--- after
is(length((grep { !$_->{silent} } jupyter_log(ev => "execute"))[0]->{code}), 100012, "all of it arrived");



=== TEST 36: pipelined requests
--- pipelined_requests eval
[qq(POST /execute\n{"code": "print one"}), "GET /contexts", qq(POST /execute\n{"code": "print two"}),
 qq(POST /execute\n{"code": 1}), qq(POST /execute\n{"code": "print three"})]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 200, 200, 422, 200]
--- response_body_like eval
[qr/"execution_count": 1\}(?s:.*)"one\\n"(?s:.*)"end_of_execution"/, qr/^\[\{"id"/,
 qr/"execution_count": 2\}(?s:.*)"two\\n"(?s:.*)"end_of_execution"/, qr/string_type/,
 qr/"execution_count": 3\}(?s:.*)"three\\n"(?s:.*)"end_of_execution"/]



=== TEST 37: the connection is used again after refusals with unread bodies
--- pipelined_requests eval
[qq(POST /nothing\n{"code": "print one"}), qq(PUT /execute\n{"code": "print one"}),
 qq(POST /execute\n{"code": "x", "context_id": "no"}), qq(POST /execute\n{"code": "print two"})]
--- more_headers
Content-Type: application/json
--- error_code eval
[404, 405, 404, 200]
--- response_body_like eval
[qr/^\{"detail":"Not Found"\}$/, qr/Method Not Allowed/, qr/Context no not found/, qr/"two\\n"/]



=== TEST 38: Expect: 100-continue
--- after
my $body = '{"code": "print hello"}';
my $sock = KexecTest::connect_to($KexecTest::Port);
print $sock "POST /execute HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
            . "Expect: 100-continue\r\nContent-Length: " . length($body) . "\r\n\r\n";
is(seen($sock, qr/\r\n\r\n/), "HTTP/1.1 100 Continue\r\n\r\n", "it is told to go on");
${*$sock}{kexec} = "";
print $sock $body;
is(types(finish($sock)), "number_of_executions stdout end_of_execution", "and its code runs");
--- request
GET /contexts
--- response_body chomp
[]



=== TEST 39: in a subrequest
--- config
location / {
    auth_request /kexec/health;
    return 204;
}
location /kexec/ {
    kexec_pass http://jupyter;
    kexec_token secret;
}
location /page {
    auth_request /kexec/health;
    empty_gif;
}
--- request
GET /page
--- error_code: 500
--- response_body_like: 500 Internal Server Error
--- error_log
kexec_pass does not work in a subrequest



=== TEST 40: a client that leaves does not keep the context
--- before
my $left = execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
close $left;
--- request
POST /execute
{"code": "print hello"}
--- more_headers
Content-Type: application/json
--- response_body_like: "execution_count": 2\}(?s:.*)"hello\\n"(?s:.*)"end_of_execution"



=== TEST 41: a client that leaves the queue never runs
--- before
my $running = execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
my $left = execute(code => "print left");
seen($left, qr/\r\n\r\n/);
close $left;
close $running;
--- request
POST /execute
{"code": "print hello"}
--- more_headers
Content-Type: application/json
--- response_body_like: "execution_count": 2\}(?s:.*)"hello\\n"(?s:.*)"end_of_execution"
--- after
is(scalar(grep { $_->{code} eq "print left" } jupyter_log(ev => "execute")), 0, "it was not run");



=== TEST 42: variables of the request, and what was there before
--- request
POST /execute
{"code": "env", "env_vars": {"FOO": "it's \"b\"\n\\"}}
--- more_headers
Content-Type: application/json
--- response_body_like: FOO(?s:.*)"end_of_execution"
--- after
my @runs = jupyter_log(ev => "execute");
my ($code) = grep { $runs[$_]->{code} eq "env" } 0 .. $#runs;
cmp_ok($code, ">", 0, "they are set before the code, not in it");



=== TEST 43: what Python takes for JSON in members that nobody uses
--- request eval
[map { qq(POST /execute\n$_) }
 qq(\xef\xbb\xbf{"code": "print a"}), '{"code": "print a", "x": 123456789012345678901234567890}',
 '{"code": "print a", "x": [NaN, -Infinity, 1e400]}', '{"x": "\ud800", "code": "print a"}',
 '{"code": "print a", "x\u0000y": {"\udc00": 1}}', qq({"code": "print a", "x": "\xed\xa0\x80"}),
 '{"code": NaN, "code": "print a"}', '{"code": "print a", "timeout": 123456789012345678901234567890}',
 '{"code": "print a", "x": ' . "[" x 500 . "]" x 500 . "}"]
--- more_headers
Content-Type: application/json
--- response_body_like: "text": "a\\n"(?s:.*)"end_of_execution"



=== TEST 44: the same in those that are used
--- request eval
[map { qq(POST /execute\n$_) }
 '{"code": NaN}', '{"code": 123456789012345678901234567890}', '{"code": "\ud800"}',
 '{"code": "1", "env_vars": {"A": 1e400, "B": "\ud800", "C": [NaN]}}', '{"code": "1", "env_vars": {"A\u0000": "1"}}',
 '{"code": "1", "timeout": NaN}', '{"code": "1", "timeout": Infinity}', '{"code": "1", "timeout": 1e400}',
 '{"code": "1", "timeout": "\ud800"}', '{"x": NaN}', 'NaN', '{"code": "1", "x": ' . "[" x 600 . "]" x 600 . "}"]
--- more_headers
Content-Type: application/json
--- error_code: 422
--- response_body eval
sub refused { '{"detail":[' . CORE::join(",", map { sprintf '{"type":"%s","loc":["body"%s],"msg":"%s"}', @$_ } @_) . ']}' }
my $string = "Input should be a valid string";
my $unicode = "$string, unable to parse raw data as a unicode string";
my $finite = "Input should be a finite number";
[(refused(["string_type", ',"code"', $string])) x 2,
 refused(["string_unicode", ',"code"', $unicode]),
 refused(["string_type", ',"env_vars","A"', $string], ["string_unicode", ',"env_vars","B"', $unicode],
         ["string_type", ',"env_vars","C"', $string]),
 refused(["string_unicode", ',"env_vars"', "Names should be valid strings without NUL"]),
 (refused(["finite_number", ',"timeout"', $finite])) x 3,
 refused(["float_type", ',"timeout"', "Input should be a valid number"]),
 refused(["missing", ',"code"', "Field required"]),
 refused(["model_attributes_type", "", "Input should be a valid dictionary or object to extract fields from"]),
 refused(["too_deep", "", "Body is nested too deep, 512 levels are allowed"])]



=== TEST 45: bodies in UTF-16 and UTF-32
--- request eval
use Encode ();
my $body = qq({"code": "print \x{e4}\x{1f600}"});
[map { "POST /execute\n" . Encode::encode($_, $body) } qw(UTF-16 UTF-16LE UTF-16BE UTF-32 UTF-32LE UTF-32BE)]
--- more_headers
Content-Type: application/json
--- response_body_like: "text": "\\u00e4\\ud83d\\ude00\\n"(?s:.*)"end_of_execution"



=== TEST 46: bodies that are no text
--- request eval
[map { qq(POST /execute\n$_) }
 qq({"code": "\xff"}), qq({"code": "1", "x": "\xc3"}), qq(\xff\xfe\x7b), qq(\x00\x00\xfe\xff\x00\x11\x00\x00)]
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_headers
Content-Type: application/json
--- response_body chomp
{"detail":"There was an error parsing the body"}
