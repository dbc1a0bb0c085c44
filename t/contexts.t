# Contexts: made, listed, restarted, interrupted, deleted; the paths of it all,
# below whatever location.

use FindBin;
use lib "$FindBin::Bin/lib";
use KexecTest;
use Test::Nginx::Socket 'no_plan';

our $Id = qr/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/;

KexecTest::setup();
run_tests();

__DATA__

=== TEST 1: a new context
--- request eval
["POST /contexts\n{}",
 qq(POST /contexts\n{"language": null, "cwd": null}),
 qq(POST /contexts\n{"language": "", "cwd": ""}),
 qq(POST /contexts\n{"language": "R", "cwd": "/tmp/a b\\u00e9", "more": 1}),
 qq(POST /contexts\n{"language": " Js "}),
 qq(POST /contexts\n{"language": "python3"})]
--- more_headers
Content-Type: application/json
--- response_headers
Content-Type: application/json
--- response_body_like eval
[qr/\A\{"id":"$::Id","language":"python","cwd":"\/home"\}\z/,
 qr/\A\{"id":"$::Id","language":"python","cwd":"\/home"\}\z/,
 qr/\A\{"id":"$::Id","language":"python","cwd":"\/home"\}\z/,
 qr/\A\{"id":"$::Id","language":"r","cwd":"\/tmp\/a b\xc3\xa9"\}\z/,
 qr/\A\{"id":"$::Id","language":"javascript","cwd":"\/home"\}\z/,
 qr/\A\{"id":"$::Id","language":"python3","cwd":"\/home"\}\z/]



=== TEST 2: bodies that are not what they should be
--- request eval
["POST /contexts\n{", "POST /contexts", qq(POST /contexts\n{"language": 5}), qq(POST /contexts\n{"cwd": []})]
--- more_headers
Content-Type: application/json
--- error_code: 422
--- response_headers
Content-Type: application/json
--- response_body_like eval
[qr/"type":"json_invalid"/,
 qr/^\{"detail":\[\{"type":"missing","loc":\["body"\],"msg":"Field required","input":null\}\]\}$/,
 qr/^\{"detail":\[\{"type":"string_type","loc":\["body","language"\],"msg":"Input should be a valid string","input":5\}\]\}$/,
 qr/^\{"detail":\[\{"type":"string_type","loc":\["body","cwd"\],"msg":"Input should be a valid string","input":\[\]\}\]\}$/]



=== TEST 3: a language without a kernel
--- request
POST /contexts
{"language": "cobol"}
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body_like: ^There is no kernel for the language cobol here, choose one of: .*python
--- after
is(http("GET", "/contexts")->{body}, "[]", "nothing is left of it");



=== TEST 4: a directory that cannot be entered
--- jupyter
{"fail_silent": {"match": "/no/such", "ename": "FileNotFoundError", "evalue": "no"}}
--- request
POST /contexts
{"cwd": "/no/such"}
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_body chomp
The working directory /no/such does not exist or cannot be entered
--- after
is(http("GET", "/contexts")->{body}, "[]", "nothing is left of it");
wait_for("the kernel to be gone", sub { !%{ jupyter("state")->{kernels} } });
ok(1, "nor its kernel");



=== TEST 5: names that are too long
--- request eval
[qq(POST /contexts\n{"language": ") . "x" x 64 . qq("}),
 qq(POST /contexts\n{"cwd": "/) . "x" x 1023 . qq("})]
--- more_headers
Content-Type: application/json
--- error_code: 400
--- response_body eval
["The name of the language is too long",
 "The working directory's path is too long, 1023 bytes are allowed"]



=== TEST 6: Jupyter is not there
--- before
jupyter("down", {});
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 503
--- response_body_like: Jupyter



=== TEST 7: Jupyter cannot make it
--- jupyter
{"session_create": {"status": 500, "body": {"message": "no process left", "reason": null}}}
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 500
--- response_body_like: no process left



=== TEST 8: a client that leaves while its context is made
--- jupyter
{"session_create": {"delay": 0.6}}
--- before
my $left = KexecTest::send_request("POST", "/contexts", {});
jupyter_wait(ev => "rest", method => "POST", "path~" => "/api/sessions");
close $left;
--- request
GET /health
--- response_body chomp
"OK"
--- after
jupyter_wait(ev => "kernel_removed");
is(http("GET", "/contexts")->{body}, "[]", "nobody knows its id, so it is gone");



=== TEST 9: the list has the order of creation
--- before
my @made = map { create_context({ language => $_ }) } qw(r python javascript python);
my $list = json(http("GET", "/contexts")->{body});
is_deeply([map { $_->{id} } @$list], \@made, "all are there, in order");
is_deeply([map { $_->{language} } @$list], [qw(r python javascript python)], "with their languages");
is(http("DELETE", "/contexts/$made[1]")->{status}, 200, "one is deleted");
splice @made, 1, 1;
push @made, create_context({ language => "r" });
$list = json(http("GET", "/contexts")->{body});
is_deeply([map { $_->{id} } @$list], \@made, "and another made, which is the last one");
--- request
GET /contexts
--- response_headers
Content-Type: application/json
--- response_body_like: \A\[(\{"id":"[0-9a-f-]{36}","language":"\w+","cwd":"/home"\},?){4}\]\z



=== TEST 10: a default context is in the list
--- request eval
[qq(POST /execute\n{"code": "print x"}), "GET /contexts"]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[qr/"x\\n"/, qr/\A\[\{"id":"$::Id","language":"python","cwd":"\/home"\}\]\z/]



=== TEST 11: delete
--- context
{}
--- request eval
["DELETE /contexts/\$CTX", "DELETE /contexts/\$CTX", qq(POST /execute\n{"code": "x", "context_id": "\$CTX"}), "GET /contexts"]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 404, 404, 200]
--- response_body_like eval
[qr/\Anull\z/, qr/\AContext $::Id not found\z/, qr/\AContext $::Id not found\z/, qr/\A\[\]\z/]
--- after
is_deeply(jupyter("state")->{kernels}, {}, "its kernel is gone");



=== TEST 12: delete ends what runs there and what waits
--- context
{}
--- before
our $running = execute(code => "print a\nsleep 30", context_id => '$CTX');
jupyter_wait(ev => "start", "code~" => "sleep 30");
our $queued = execute(code => "print b", context_id => '$CTX');
seen($queued, qr/\r\n\r\n/);
--- request
DELETE /contexts/$CTX
--- response_body chomp
null
--- after
our ($running, $queued);
my $events = finish($running);
is($events->[-2]{name}, "ContextDeleted", "the one that ran is told");
is($events->[-1]{type}, "end_of_execution", "and ends");
is(scalar(grep { $_->{code} eq "print b" } jupyter_log(ev => "execute")), 0, "the one that waited was not run");



=== TEST 13: restart
--- context
{}
--- request eval
[qq(POST /execute\n{"code": "set a 1", "context_id": "\$CTX"}), "POST /contexts/\$CTX/restart",
 qq(POST /execute\n{"code": "get a", "context_id": "\$CTX"}), "GET /contexts"]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[qr/"end_of_execution"/, qr/\Anull\z/, qr/"execution_count": 1\}(?s:.*)NameError/, qr/"id":"\$CTX"|"id":"$::Id"/]
--- after
my @cwd = grep { $_->{code} =~ m{/home} } jupyter_log(ev => "execute", silent => 1);
is(scalar @cwd, 2, "the new kernel is put into its directory again");



=== TEST 14: restart ends what runs there
--- context
{}
--- before
our $running = execute(code => "print a\nsleep 30", context_id => '$CTX');
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request
POST /contexts/$CTX/restart
--- response_body chomp
null
--- after
our $running;
my $events = finish($running);
is($events->[-2]{name}, "ContextRestarted", "it is told");
is($events->[-1]{type}, "end_of_execution", "and ends");



=== TEST 15: restart fails
--- context
{}
--- before
jupyter("set", { restart => { status => 500, body => { message => "x", reason => undef } } });
--- request
POST /contexts/$CTX/restart
--- error_code: 500
--- response_body chomp
Failed to restart context



=== TEST 16: interrupt
--- context
{}
--- before
our $running = execute(code => "set a 1\nsleep 30", context_id => '$CTX');
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request eval
["POST /contexts/\$CTX/interrupt", qq(POST /execute\n{"code": "get a", "context_id": "\$CTX"})]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[qr/\Anull\z/, qr/"execution_count": 2\}(?s:.*)"1\\n"/]
--- after
our $running;
my $events = finish($running);
is($events->[-2]{name}, "KeyboardInterrupt", "it was interrupted");
is($events->[-1]{type}, "end_of_execution", "and ends");



=== TEST 17: interrupt, and nothing runs
--- context
{}
--- request
POST /contexts/$CTX/interrupt
--- response_body chomp
null
--- after
is(scalar(jupyter_log(ev => "interrupt")), 0, "nothing was sent");



=== TEST 18: interrupt, and the code does not react
--- location
kexec_interrupt_timeout 300ms;
kexec_interrupt_failure wait;
--- context
{}
--- before
execute(code => "swallow 2", context_id => '$CTX');
jupyter_wait(ev => "start", "code~" => "swallow");
--- request
POST /contexts/$CTX/interrupt
--- error_code: 504
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body chomp
The code does not react to interrupts, restart the context to end it



=== TEST 19: the default context by its alias
--- request eval
["POST /contexts/default/restart", qq(POST /execute\n{"code": "count"}), "POST /contexts/default/restart",
 "POST /contexts/default/interrupt", qq(POST /execute\n{"code": "count"}), "DELETE /contexts/default", "GET /contexts"]
--- more_headers
Content-Type: application/json
--- error_code eval
[404, 200, 200, 200, 200, 200, 200]
--- response_body_like eval
[qr/\AContext default not found\z/, qr/"execution_count": 1\}/, qr/\Anull\z/, qr/\Anull\z/, qr/"execution_count": 1\}/,
 qr/\Anull\z/, qr/\A\[\]\z/]



=== TEST 20: contexts that are not there
--- request eval
["DELETE /contexts/no-such", "POST /contexts/no-such/restart", "POST /contexts/no-such/interrupt", "DELETE /contexts/a%20b",
 "POST /contexts/no-such/restart\n{}"]
--- error_code: 404
--- response_headers
Content-Type: text/plain; charset=utf-8
--- response_body eval
["Context no-such not found", "Context no-such not found", "Context no-such not found", "Context a b not found",
 "Context no-such not found"]



=== TEST 21: other methods
--- request eval
["PUT /contexts\n{}", "GET /contexts/abc", "POST /contexts/abc", "GET /contexts/abc/restart", "DELETE /contexts/abc/interrupt",
 "HEAD /contexts", "POST /health"]
--- error_code: 405
--- response_headers eval
["Allow: GET, POST", "Allow: DELETE", "Allow: DELETE", "Allow: POST", "Allow: POST", "Allow: GET, POST", "Allow: GET"]
--- response_body eval
my $body = '{"detail":"Method Not Allowed"}';
[$body, $body, $body, $body, $body, "", $body]



=== TEST 22: other paths
--- request eval
["GET /", "GET /nope", "GET /contexts/", "GET /contextsx", "POST /contexts/abc/nope",
 "DELETE /contexts/a%2Fb", "GET /Health", "POST /execute/x\n{}", "GET //health/x"]
--- error_code eval
[404, 404, 307, 404, 404, 404, 404, 404, 404]
--- response_body_like eval
[(qr/\A\{"detail":"Not Found"\}\z/) x 2, qr/\A\z/, (qr/\A\{"detail":"Not Found"\}\z/) x 6]



=== TEST 23: a slash too many
--- request eval
["GET /health/", "GET /contexts/?a=b%20c", "POST /execute/\n{}", "POST /contexts/a%20b/restart/", "PUT /contexts/abc/"]
--- error_code: 307
--- response_headers eval
["Location: /health",
 "Location: /contexts?a=b%20c",
 "Location: /execute",
 "Location: /contexts/a%20b/restart",
 "Location: /contexts/abc"]
--- response_body eval
["", "", "", "", ""]



=== TEST 24: a location of its own
--- config
location /api/v1/ {
    kexec_pass http://jupyter;
    kexec_token secret;
}
location / {
    return 204;
}
--- request eval
["GET /api/v1/health", qq(POST /api/v1/execute\n{"code": "print x"}), "POST /api/v1/contexts\n{}", "GET /api/v1/contexts/",
 "GET /api/v1/", "GET /api/v1", "GET /health", "GET /api/v1/api/v1/health"]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 200, 200, 307, 404, 301, 204, 404]
--- response_headers eval
["", "", "", "Location: /api/v1/contexts", "", "", "", ""]
--- response_body_like eval
[qr/"OK"/, qr/"x\\n"/, qr/"id":/, qr/\A\z/, qr/Not Found/, qr/301/, qr/\A\z/, qr/Not Found/]



=== TEST 25: a location without a slash at its end
--- config
location /api {
    kexec_pass http://jupyter;
    kexec_token secret;
}
--- request eval
["GET /api/health", qq(POST /api/execute\n{"code": "print x"}), "GET /apihealth", "GET /api"]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 200, 404, 404]
--- response_body_like eval
[qr/"OK"/, qr/"x\\n"/, qr/Not Found/, qr/Not Found/]



=== TEST 26: two locations have the same contexts
--- config
location /a/ {
    kexec_pass http://jupyter;
    kexec_token secret;
}
location /b/ {
    kexec_pass http://jupyter;
    kexec_token secret;
}
--- request eval
[qq(POST /a/execute\n{"code": "set x 1"}), qq(POST /b/execute\n{"code": "get x"})]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[qr/"execution_count": 1\}/, qr/"execution_count": 2\}(?s:.*)"1\\n"/]
