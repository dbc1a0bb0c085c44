# GET /health: whether a sandbox can be used.

use FindBin;
use lib "$FindBin::Bin/lib";
use KexecTest;
use Test::Nginx::Socket 'no_plan';

KexecTest::setup();
run_tests();

__DATA__

=== TEST 1: no default contexts: as soon as Jupyter answers
--- request eval
["GET /health", "GET /health?x=1"]
--- response_headers
Content-Type: application/json
Content-Length: 4
--- response_body chomp
"OK"



=== TEST 2: default contexts that are ready
--- location
kexec_default_context python;
kexec_default_context r;
--- before
wait_for("health", sub { http("GET", "/health")->{status} == 200 });
--- request eval
["GET /health", "GET /contexts"]
--- response_body_like eval
[qr/\A"OK"\z/, qr/^(?=.*"python")(?=.*"r")(.*"id"){2}/]
--- after
is(scalar(grep { $_->{method} eq "POST" && $_->{path} eq "/api/sessions" } jupyter_log(ev => "rest")), 2,
   "each was made once");



=== TEST 3: a default context that is not ready yet
--- jupyter
{"start_delay": 1}
--- location
kexec_default_context python;
--- before
jupyter_wait(ev => "session_created");
--- request
GET /health
--- error_code: 503
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body_like: ^python: .*kernel
--- after
wait_for("health", sub { http("GET", "/health")->{status} == 200 });
ok(1, "until it is");



=== TEST 4: a default context that cannot be made says why, until it can
--- jupyter
{"session_create": {"status": 500, "body": {"message": "no process left", "reason": null}}}
--- location
kexec_default_context python;
--- before
wait_for("the reason", sub { http("GET", "/health")->{body} =~ /no process left/ });
--- request
GET /health
--- error_code: 503
--- response_body_like: ^python: .*no process left
--- error_log
default context "python" could not be made
--- after
jupyter("set", { session_create => undef });
is(wait_for("health", sub { my $answer = http("GET", "/health"); $answer->{status} == 200 && $answer })->{body}, '"OK"',
   "it is tried again");



=== TEST 5: a default context without a kernel is left out
--- location
kexec_default_context python;
kexec_default_context cobol;
--- before
wait_for("health", sub { http("GET", "/health")->{status} == 200 });
--- request
GET /contexts
--- response_body_like: ^\[\{"id":"[0-9a-f-]+","language":"python","cwd":"/home"\}\]$
--- error_log eval
qr/\[warn\] .* default context "cobol" is left out: There is no kernel for the language cobol here/



=== TEST 6: a default directory that is not there
--- jupyter
{"fail_silent": {"match": "/home", "ename": "FileNotFoundError", "evalue": "no"}}
--- location
kexec_default_context python;
--- before
logged("error.log", 'default context "python" is left out: The working directory /home');
--- request
GET /contexts
--- response_body chomp
[]



=== TEST 7: Jupyter is not there
--- before
jupyter("down", {});
--- request
GET /health
--- error_code: 503
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body_like: ^Jupyter is not reachable: .+



=== TEST 8: Jupyter is not there when nginx starts, and comes later
--- jupyter_down
--- location
kexec_default_context python;
--- before
wait_for("a reason", sub { my $answer = http("GET", "/health"); $answer->{status} == 503 && $answer->{body} =~ /^python: .*Jupyter/ });
jupyter("up", {});
wait_for("health", sub { http("GET", "/health")->{status} == 200 });
--- request
POST /execute
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- response_body_like: "execution_count": 1\}(?s:.*)"x\\n"



=== TEST 9: Jupyter refuses
--- jupyter
{"status": {"status": 403, "body": {"message": "Forbidden", "reason": null}}}
--- request
GET /health
--- error_code: 503
--- response_body chomp
Jupyter answers 403



=== TEST 10: it is no constant: Jupyter goes
--- before
is(http("GET", "/health")->{status}, 200, "it is well");
jupyter("down", {});
is(http("GET", "/health")->{status}, 200, "which is believed for a second");
--- request
GET /contexts
--- response_body chomp
[]
--- after
my $answer = wait_for("illness", sub { my $answer = http("GET", "/health"); $answer->{status} != 200 && $answer });
is($answer->{status}, 503, "then it is not");
like($answer->{body}, qr/^Jupyter is not reachable: /, "and says why");
jupyter("up", {});
is(http("GET", "/health")->{status}, 200, "when it is back, that is seen at once");



=== TEST 11: Jupyter is too busy to answer, but was well a moment ago
--- before
is(http("GET", "/health")->{status}, 200, "it is well");
jupyter("set", { status => { hang => JSON::PP::true() } });
my $answer;
wait_for("a call", sub { $answer = http("GET", "/health"); jupyter_log(ev => "rest", path => "/api/status") > 1 });
is($answer->{body}, '"OK"', "it is still well, though it does not answer");
--- request
GET /contexts
--- response_body chomp
[]



=== TEST 12: Jupyter never answered
--- jupyter
{"status": {"hang": true}}
--- request
GET /health
--- error_code: 503
--- response_body chomp
Jupyter is not reachable: timed out



=== TEST 13: many at once are one call
--- jupyter
{"status": {"delay": 0.3}}
--- before
my @socks = map { KexecTest::send_request("GET", "/health") } 1 .. 20;
is(scalar(grep { KexecTest::read_answer($_)->{body} eq '"OK"' } @socks), 20, "all are answered");
--- request
GET /health
--- response_body chomp
"OK"
--- after
is(scalar(jupyter_log(ev => "rest", path => "/api/status")), 1, "by one call");



=== TEST 14: other methods, and a slash too many
--- request eval
["HEAD /health", "POST /health\n{}", "GET /health/"]
--- error_code eval
[405, 405, 307]
--- response_headers eval
["Allow: GET", "Allow: GET", "Location: /health"]
--- response_body eval
["", '{"detail":"Method Not Allowed"}', ""]



=== TEST 15: a default context that is not ready yet, of a location with two configurations
--- jupyter
{"start_delay": 1}
--- location
kexec_default_context python;
limit_except POST {
    allow all;
}
--- before
jupyter_wait(ev => "session_created");
--- request
GET /health
--- error_code: 503
--- response_body_like: ^python: .*kernel
