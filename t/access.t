# nginx's own modules in front of it, and what its log can tell.

use FindBin;
use lib "$FindBin::Bin/lib";
use KexecTest;
use Test::Nginx::Socket 'no_plan';

our $Log = <<'_EOC_';
log_format kexec 'KEXEC $request_uri $status context=$kexec_context execution=$kexec_execution '
                 'status=$kexec_status queue=$kexec_queue_time run=$kexec_run_time;';
access_log $TEST_NGINX_SERVER_ROOT/logs/access.log kexec;
_EOC_

our $Id = qr/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

KexecTest::setup();
run_tests();

__DATA__

=== TEST 1: auth_basic
--- location
auth_basic "kexec";
auth_basic_user_file $TEST_NGINX_SERVER_ROOT/html/users;
--- user_files
>>> users
ann:{PLAIN}secret
--- request eval
[(qq(POST /execute\n{"code": "print x"})) x 2, "POST /contexts\n{}", "GET /contexts"]
--- more_headers eval
["Content-Type: application/json", "Content-Type: application/json\nAuthorization: Basic YW5uOnNlY3JldA==",
 "Content-Type: application/json", "Authorization: Basic YW5uOnNlY3JldA=="]
--- error_code eval
[401, 200, 401, 200]
--- response_body_like eval
[qr/401 Authorization Required/, qr/"x\\n"(?s:.*)"end_of_execution"/, qr/401/, qr/^\[\{"id"/]



=== TEST 2: auth_request, and its answer in a header
--- config
location / {
    auth_request /auth;
    auth_request_set $who $upstream_http_x_who;
    add_header X-Who $who;
    kexec_pass http://jupyter;
    kexec_token secret;
}
location = /auth {
    internal;
    proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/decide;
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
}
location = /decide {
    add_header X-Who ann;
    if ($http_x_key = "right") {
        return 204;
    }
    return 403;
}
--- request eval
[(qq(POST /execute\n{"code": "print x"})) x 2]
--- more_headers eval
["Content-Type: application/json", "Content-Type: application/json\nX-Key: right"]
--- error_code eval
[403, 200]
--- response_headers eval
["", "X-Who: ann"]
--- response_body_like eval
[qr/403 Forbidden/, qr/"x\\n"(?s:.*)"end_of_execution"/]



=== TEST 3: limit_req
--- http
limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
--- location
limit_req zone=one burst=1 nodelay;
limit_req_status 429;
--- request eval
[(qq(POST /execute\n{"code": "print x"})) x 3]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 200, 429]
--- response_body_like eval
[qr/"x\\n"/, qr/"x\\n"/, qr/429 Too Many Requests/]
--- after
ok(logged("error.log", "limiting requests"), "nginx says so");



=== TEST 4: limit_conn counts a stream as long as it runs
--- http
limit_conn_zone $server_name zone=two:1m;
--- location
limit_conn two 1;
--- before
our $running = execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request
POST /execute
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- error_code: 503
--- response_body_like: 503 Service Temporarily Unavailable
--- after
our $running;
close $running;
wait_for("the other one", sub { http("POST", "/execute", { code => "print x" })->{status} == 200 });
ok(1, "when that has left, there is room again");



=== TEST 5: allow and deny
--- location
deny all;
--- request
POST /execute
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- error_code: 403
--- response_body_like: 403 Forbidden
--- after
is(scalar(grep { $_->{path} ne "/api/sessions" || $_->{method} ne "GET" } jupyter_log()), 0,
   "Jupyter heard nothing of it");



=== TEST 6: error_page takes the place of a refusal
--- config
location / {
    error_page 403 = /other;
    deny all;
    kexec_pass http://jupyter;
    kexec_token secret;
}
location = /other {
    return 200 "other\n";
}
--- request
POST /execute
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- response_body
other



=== TEST 7: headers and gzip of nginx
--- location
add_header X-Own yes always;
gzip on;
gzip_min_length 1;
gzip_types application/x-ndjson application/json;
--- before
my $sock = KexecTest::send_request("POST", "/execute", { code => "print hello\nsleep 30" },
                                   headers => "Accept-Encoding: gzip\r\n");
my $answer = seen($sock, qr/\r\n\r\n(?s:.{20,})/);
like($answer, qr/X-Own: yes\r\n/, "the header of a stream");
like($answer, qr/Content-Encoding: gzip\r\n/, "it is compressed, and flushed before it ends");
--- request
GET /nope
--- error_code: 404
--- response_headers
X-Own: yes
--- response_body_like: Not Found



=== TEST 8: the log of an execution that is ok
--- http eval: $::Log
--- request
POST /execute
{"code": "sleep 0.2"}
--- more_headers
Content-Type: application/json
--- response_body_like: "end_of_execution"
--- after
my $id = json(http("GET", "/contexts")->{body})->[0]{id};
like(logged("access.log", "KEXEC /execute"),
     qr/ 200 context=$id execution=$::Id status=ok queue=\d+\.\d{3} run=(0\.[2-9]\d\d|[1-9]\d*\.\d{3});$/, "all is known");



=== TEST 9: the log of an error
--- http eval: $::Log
--- request
POST /execute
{"code": "error ValueError no"}
--- more_headers
Content-Type: application/json
--- response_body_like: "ValueError"
--- after
like(logged("access.log", "KEXEC /execute"),
     qr/ 200 context=$::Id execution=$::Id status=error queue=\d+\.\d{3} run=\d+\.\d{3};$/, "it is an error");



=== TEST 10: the log of a timeout
--- http eval: $::Log
--- request
POST /execute
{"code": "sleep 30", "timeout": 0.2}
--- more_headers
Content-Type: application/json
--- response_body_like: "ExecutionTimeout"
--- after
like(logged("access.log", "KEXEC /execute"),
     qr/ 200 context=$::Id execution=$::Id status=timeout queue=\d+\.\d{3} run=(0\.[2-9]\d\d|[1-9]\d*\.\d{3});$/, "it is a timeout");



=== TEST 11: the log of a timeout in the queue
--- http eval: $::Log
--- location
kexec_queue timeout=200ms;
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request
POST /execute?second
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- response_body_like: "QueueTimeout"
--- after
like(logged("access.log", "KEXEC /execute.second"),
     qr/ 200 context=$::Id execution=$::Id status=rejected queue=\S+ run=-;$/, "it never ran");



=== TEST 12: the log of what waits
--- http eval: $::Log
--- before
execute(code => "sleep 0.7");
jupyter_wait(ev => "start", "code~" => "sleep 0.7");
--- request
POST /execute?second
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- response_body_like: "x\\n"
--- after
logged("access.log", "KEXEC /execute.second") =~ / status=ok queue=(\d+\.\d{3}) run=(\d+\.\d{3});$/
    or die "not in the log";
cmp_ok($1, ">", 0.1, "it waited");
cmp_ok($2, "<", 0.4, "but that is no running");



=== TEST 13: the log of a client that left
--- http eval: $::Log
--- before
my $left = execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
close $left;
--- request
GET /contexts
--- response_body_like: "language"
--- after
like(logged("access.log", "KEXEC /execute"),
     qr/ (499|200) context=$::Id execution=$::Id status=cancelled queue=\d+\.\d{3} run=\d+\.\d{3};$/, "it is cancelled");



=== TEST 14: the log of a client that left the queue
--- http eval: $::Log
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
my $left = KexecTest::send_request("POST", "/execute?left", { code => "print x" });
seen($left, qr/\r\n\r\n/);
close $left;
--- request
GET /contexts
--- response_body_like: "language"
--- after
like(logged("access.log", "KEXEC /execute.left"),
     qr/ context=$::Id execution=$::Id status=cancelled queue=\S+ run=-;$/, "it never ran");



=== TEST 15: the log of refusals
--- http eval: $::Log
--- location
kexec_queue size=0;
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request eval
[qq(POST /execute?r1\n{"code": "print x"}), qq(POST /execute?r2\n{"code": 1}),
 qq(POST /execute?r3\n{"code": "x", "context_id": "no"}), "PUT /execute?r4\n{}", "GET /nope?r5"]
--- more_headers
Content-Type: application/json
--- error_code eval
[429, 422, 404, 405, 404]
--- response_body_like: .
--- after
for my $status (429, 422, 404, 405, 404) {
    our $n++;
    like(logged("access.log", "KEXEC .*r$n "),
         qr/ $status context=\S+ execution=\S+ status=rejected queue=\S+ run=-;$/, "status $status");
}



=== TEST 16: the log of a kernel's death
--- http eval: $::Log
--- request
POST /execute
{"code": "print x\ndie"}
--- more_headers
Content-Type: application/json
--- response_body_like: "KernelDied"(?s:.*)"end_of_execution"
--- after
like(logged("access.log", "KEXEC /execute"),
     qr/ 200 context=$::Id execution=$::Id status=died queue=\d+\.\d{3} run=\d+\.\d{3};$/, "it died");



=== TEST 17: the log of contexts' own requests
--- http eval: $::Log
--- context
{}
--- request eval
["DELETE /contexts/\$CTX", "GET /health"]
--- response_body_like: .
--- after
like(logged("access.log", "KEXEC /contexts "), qr/ 200 context=$::Id execution=- status=ok queue=- run=-;$/, "one was made");
like(logged("access.log", "KEXEC /contexts/"), qr/ 200 context=$::Id execution=- status=\S+ queue=- run=-;$/, "and deleted");
like(logged("access.log", "KEXEC /health"), qr/ 200 context=- execution=- status=- queue=- run=-;$/, "nothing of it elsewhere");



=== TEST 18: the variables where the module is not
--- http eval: $::Log
--- config
location / {
    return 200 "[$kexec_context$kexec_execution$kexec_status$kexec_queue_time$kexec_run_time]";
}
--- request
GET /
--- response_body chomp
[]
--- after
like(logged("access.log", "KEXEC /"), qr/ 200 context=- execution=- status=- queue=- run=-;$/, "are empty in the log");



=== TEST 19: error.log names context and execution
--- request
POST /execute
{"code": "print x\ndie"}
--- more_headers
Content-Type: application/json
--- response_body_like: "KernelDied"
--- after
like(logged("error.log", "kexec context"), qr/kexec context: $::Id, execution: $::Id/, "by their ids");
