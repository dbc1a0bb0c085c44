# Directives: what is accepted, what is refused and in which words, and what
# the levels inherit from each other.

use FindBin;
use lib "$FindBin::Bin/lib";
use KexecTest;
use Test::Nginx::Socket 'no_plan';

my $long = "x" x 1100;

# [what, lines for http, lines for the location, the sentence]; "location: "
# in front of lines makes them the whole of the server's configuration

my @refused = (

    # kexec_zone

    ["a zone without a size", "kexec_zone kexec;", "",
     'invalid zone "kexec", it should be "name:size", for example '
     . '"kexec:8m"'],
    ["a zone without a name", "kexec_zone :1m;", "",
     'invalid zone ":1m", it should be "name:size"'],
    ["a zone with nonsense for a size", "kexec_zone kexec:big;", "",
     'invalid zone "kexec:big", it should be "name:size"'],
    ["a zone with an empty size", "kexec_zone kexec:;", "",
     'invalid zone "kexec:", it should be "name:size"'],
    ["a zone that is too small", "kexec_zone kexec:8k;", "",
     'kexec zone "kexec" is too small, it takes at least'],
    ["a second zone", "kexec_zone one:1m; kexec_zone two:1m;", "",
     '"kexec_zone" directive is duplicate'],
    ["a zone in a location", undef, "kexec_zone two:1m;",
     '"kexec_zone" directive is not allowed here'],
    ["a zone whose name somebody else uses",
     "limit_req_zone \$uri zone=kexec:1m rate=1r/s; kexec_zone kexec:1m;", "",
     '"kexec"'],

    # kexec_pass

    ["kexec_pass without a zone", "", "",
     '"kexec_pass" in location "/" needs a "kexec_zone" in the http block'],
    ["kexec_pass twice", undef, "kexec_pass http://jupyter;",
     '"kexec_pass" directive is duplicate'],
    ["kexec_pass with https", undef,
     "location: location / { kexec_pass https://jupyter; }",
     'invalid URL "https://jupyter": "kexec_pass" takes http://upstream or '
     . 'http://host:port, with a path if Jupyter has a base_url'],
    ["kexec_pass without a scheme", undef,
     "location: location / { kexec_pass jupyter; }",
     'invalid URL "jupyter": "kexec_pass" takes'],
    ["kexec_pass with arguments", undef,
     "location: location / { kexec_pass http://jupyter/base?x=y; }",
     'invalid URL "http://jupyter/base?x=y": "kexec_pass" takes'],
    ["kexec_pass with a scheme alone", undef,
     "location: location / { kexec_pass http://; }",
     'invalid URL "http://": "kexec_pass" takes'],
    ["kexec_pass in a location by regular expression", undef,
     "location: location ~ /x { kexec_pass http://jupyter; }",
     '"kexec_pass" directive works in a prefix location only, not in an '
     . 'exact one, one given by a regular expression, or a named one'],
    ["kexec_pass in an exact location", undef,
     "location: location = /health { kexec_pass http://jupyter; }",
     '"kexec_pass" directive works in a prefix location only'],
    ["kexec_pass in a named location", undef,
     "location: location \@kexec { kexec_pass http://jupyter; }",
     '"kexec_pass" directive works in a prefix location only'],
    ["kexec_pass inside an if", undef,
     "location: location / { if (\$arg_x) { kexec_pass http://jupyter; } }",
     '"kexec_pass" directive is not allowed here'],
    ["kexec_pass inside limit_except", undef,
     "location: location / { limit_except GET { kexec_pass http://jupyter; } }",
     '"kexec_pass" directive is not allowed here'],
    ["kexec_pass in a server", undef,
     "location: kexec_pass http://jupyter;",
     '"kexec_pass" directive is not allowed here'],
    ["kexec_pass with a bad port", undef,
     "location: location / { kexec_pass http://127.0.0.1:70000; }",
     'invalid port'],
    ["kexec_pass with a name that nobody has", undef,
     "location: location / { kexec_pass http://no-such-host.invalid; }",
     'host not found in upstream "no-such-host.invalid"'],
    (map {
        my ($what, $a, $b) = @$_;
        ["locations with $what", "upstream other { server 127.0.0.1:1; } kexec_zone kexec:1m;",
         "location: location /a/ { kexec_pass $a; } location /b/ { kexec_pass $b; }",
         '"kexec_pass" in location "/b/" goes somewhere else than the one in '
         . 'location "/a/", but all contexts of an nginx are in the same '
         . 'Jupyter Servers: name these in one upstream block, or run another '
         . 'nginx']
     } ["different upstreams", "http://jupyter", "http://other"],
       ["an upstream and an address", "http://jupyter", "http://127.0.0.1:1"],
       ["different addresses", "http://127.0.0.1:1", "http://127.0.0.1:2"],
       ["different paths", "http://jupyter/one/", "http://jupyter/two"]),
    ["kexec_pass without a value", undef,
     "location: location / { kexec_pass; }",
     'invalid number of arguments in "kexec_pass" directive'],

    # the token

    ["two tokens", undef, "kexec_token other;",
     '"kexec_token" directive is duplicate'],
    ["a token with a space", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token \"a b\"; }",
     '"kexec_token" directive has white space or other characters that no '
     . 'HTTP header can hold'],
    ["a token, then a file of one", undef,
     "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/token;",
     '"kexec_token_file" directive cannot be used beside "kexec_token"'],
    ["a file of a token, then a token", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/token; "
     . "kexec_token secret; }",
     '"kexec_token" directive cannot be used beside "kexec_token_file"'],
    ["two files of a token", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/token; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/token; }",
     '"kexec_token_file" directive is duplicate'],
    ["a token with an unknown variable", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token \$no_such_variable; }",
     'unknown "no_such_variable" variable'],
    ["a file of a token that is not there", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/nowhere; }",
     'html/nowhere" failed (2: No such file or directory)'],
    ["a file of a token that is a directory", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html; }",
     'html" failed (21: Is a directory)'],
    ["an empty file of a token", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/empty; }",
     'html/empty" should hold a token of 1 to 4095 characters'],
    ["a file that is too long for a token", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/long; }",
     'html/long" should hold a token of 1 to 4095 characters'],
    ["a file with two words for a token", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token_file \$TEST_NGINX_SERVER_ROOT/html/words; }",
     'html/words" has white space or other characters that no HTTP header '
     . 'can hold'],
    ["a default context and a token with variables", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_token \$http_token; kexec_default_context python; }",
     '"kexec_default_context" is made without a request and cannot use a '
     . '"kexec_token" with variables, use "kexec_token_file"'],
    ["a default context and an inherited token with variables",
     undef,
     "location: kexec_token \$http_token; location / { "
     . "kexec_pass http://jupyter; kexec_default_context python; }",
     '"kexec_default_context" is made without a request'],

    # contexts

    ["the same default context twice", undef,
     "kexec_default_context python; kexec_default_context python;",
     'duplicate default context "python"'],
    ["the same default context by another name", undef,
     "kexec_default_context javascript; kexec_default_context JS;",
     'duplicate default context "JS"'],
    ["a default context without a name", undef,
     'kexec_default_context " ";', 'invalid language " "'],
    ["a default context with a long name", undef,
     "kexec_default_context $long;", 'invalid language "xxx'],
    ["two default directories", undef, "kexec_default_cwd /tmp;",
     '"kexec_default_cwd" directive is duplicate'],
    ["a default directory with a long path", undef,
     "location: location / { kexec_pass http://jupyter; "
     . "kexec_default_cwd /$long; }",
     '"kexec_default_cwd" is longer than 1023 bytes'],

    # kexec_env

    ["a variable without a value", undef, "kexec_env A;",
     'invalid number of arguments in "kexec_env" directive'],
    ["a variable with an equals sign", undef, "kexec_env A=B c;",
     '"kexec_env A=B": the name of an environment variable has an equals '
     . 'sign'],
    ["a variable without a name", undef, 'kexec_env "" c;',
     '"kexec_env ": the name of an environment variable is empty'],
    ["a variable that bash cannot hold", undef, "kexec_env 1A c;",
     '"kexec_env 1A": bash has only variables whose names are letters, '
     . 'digits and underscores'],
    ["the same variable twice", undef, "kexec_env A b; kexec_env A c;",
     'duplicate variable "A"'],

    # kexec_queue

    ["a queue twice", undef, "kexec_queue size=1; kexec_queue timeout=1s;",
     '"kexec_queue" directive is duplicate'],
    ["a queue of nothing", undef, "kexec_queue;",
     'invalid number of arguments in "kexec_queue" directive'],
    (map {
        ["a queue with $_", undef, "kexec_queue $_;",
         "invalid parameter \"$_\", \"kexec_queue\" takes size=number and "
         . "timeout=time"]
     } "64", "size=", "size=many", "size=-1", "timeout=", "timeout=soon",
       "timeout=0", "timeout=0s", "length=3"),

    # times

    (map {
        my $name = $_;
        (["$name 0", undef, "$name 0;",
          "\"$name\" directive must not be 0: every wait has a limit"],
         ["$name soon", undef, "$name soon;",
          "\"$name\" directive invalid value"],
         ["$name twice", undef, "$name 1s; $name 1s;",
          "\"$name\" directive is duplicate"])
     } qw(kexec_keepalive kexec_connect_timeout kexec_jupyter_timeout
          kexec_ready_timeout kexec_reconnect_timeout kexec_interrupt_timeout
          kexec_client_timeout)),

    ["kexec_interrupt_failure with another word", undef,
     "kexec_interrupt_failure kill;", 'invalid value "kill"'],
    ["kexec_interrupt_failure twice", undef,
     "kexec_interrupt_failure wait; kexec_interrupt_failure wait;",
     '"kexec_interrupt_failure" directive is duplicate'],

    # sizes

    (map {
        my $name = $_;
        (["$name big", undef, "$name big;",
          "\"$name\" directive invalid value"],
         ["$name twice", undef, "$name 1m; $name 1m;",
          "\"$name\" directive is duplicate"])
     } qw(kexec_max_code_size kexec_max_message kexec_buffer_size
          kexec_max_temp_file_size)),

    ["a buffer that is too small", undef, "kexec_buffer_size 31k;",
     '"kexec_buffer_size" must be at least 32k'],
    (map {
        my ($what, $url, $sentence) = @$_;
        ["kexec_envs_url $what", undef, "kexec_envs_url $url;", $sentence]
     } ["without a scheme", "127.0.0.1:80/envs", 'takes http://host:port/path or "off"'],
       ["with TLS", "https://127.0.0.1/envs", 'takes http://host:port/path or "off"'],
       ["with a bad port", "http://127.0.0.1:x/envs", 'invalid port in "kexec_envs_url"'],
       ["with arguments but no path", "http://127.0.0.1:80?of=me", 'takes http://host:port/path or "off"'],
       ["with an unknown host", "http://nobody.invalid/", 'host not found in "kexec_envs_url"'],
       ["twice", "off; kexec_envs_url http://127.0.0.1/", '"kexec_envs_url" directive is duplicate']),

    ["messages that are too small for a kernel's answers", undef,
     "kexec_max_message 63k;",
     '"kexec_max_message" must be at least 64k'],

    ["kexec_temp_path twice", undef,
     "kexec_temp_path a_temp; kexec_temp_path b_temp;",
     '"kexec_temp_path" directive is duplicate'],
    ["kexec_temp_path with a bad level", undef,
     "kexec_temp_path a_temp 0;",
     '"kexec_temp_path" directive invalid value'],
);

my $n = 0;
my $spec = join "", <DATA>;

for my $case (@refused) {
    my ($what, $http, $location, $sentence) = @$case;

    $n++;
    $spec .= "=== REFUSED $n: $what\n";
    $spec .= "--- bare_http\n$http\n" if defined $http;
    $spec .= $location =~ s/^location: // ? "--- config\n$location\n"
                                          : "--- location\n$location\n";
    $spec .= "--- user_files\n>>> token\nsecret\n>>> empty\n\n>>> words\n"
             . "two words\n>>> long\n" . "x" x 4096 . "\n";
    $spec .= "--- must_die: 1\n--- error_log\n$sentence\n[emerg]\n\n";
}

Test::Base::spec_string($spec);

KexecTest::setup();
run_tests();

__DATA__

=== TEST 1: every directive in a location
--- location
kexec_default_context python;
kexec_default_context R;
kexec_env A b;
kexec_env C "it's \"d\"";
kexec_envs_url http://unix:/nowhere:/envs;
kexec_queue size=0 timeout=1ms;
kexec_keepalive 1s;
kexec_connect_timeout 1ms;
kexec_jupyter_timeout 1m;
kexec_ready_timeout 1h;
kexec_reconnect_timeout 500;
kexec_interrupt_timeout 2s;
kexec_interrupt_failure wait;
kexec_client_timeout 1d;
kexec_max_code_size 1;
kexec_max_message 1024m;
kexec_buffer_size 32k;
kexec_max_temp_file_size 0;
kexec_temp_path $TEST_NGINX_SERVER_ROOT/other_temp 1 2 3;
--- request
GET /nothing
--- error_code: 404
--- response_body chomp
{"detail":"Not Found"}



=== TEST 2: every directive in http and again in a server
--- http
kexec_token_file $TEST_NGINX_SERVER_ROOT/html/token;
kexec_default_context python;
kexec_default_cwd /one;
kexec_env A b;
kexec_envs_url http://localhost;
kexec_queue timeout=1s;
kexec_keepalive 1s;
kexec_connect_timeout 1s;
kexec_jupyter_timeout 1s;
kexec_ready_timeout 1s;
kexec_reconnect_timeout 1s;
kexec_interrupt_timeout 1s;
kexec_interrupt_failure restart;
kexec_client_timeout 1s;
kexec_max_code_size 1k;
kexec_max_message 64k;
kexec_buffer_size 1m;
kexec_max_temp_file_size 1k;
--- config
kexec_token secret;
kexec_default_context javascript;
kexec_default_cwd /two;
kexec_env A c;
kexec_envs_url off;
kexec_queue size=3;
kexec_keepalive 1s;
kexec_connect_timeout 1s;
kexec_jupyter_timeout 1s;
kexec_ready_timeout 1s;
kexec_reconnect_timeout 1s;
kexec_interrupt_timeout 1s;
kexec_interrupt_failure wait;
kexec_client_timeout 1s;
kexec_max_code_size 1k;
kexec_max_message 64k;
kexec_buffer_size 1m;
kexec_max_temp_file_size 1k;
kexec_temp_path $TEST_NGINX_SERVER_ROOT/other_temp;
location / {
    kexec_pass http://jupyter;
}
--- user_files
>>> token
secret
--- request
GET /nothing
--- error_code: 404



=== TEST 3: a zone without a kexec_pass
--- config
location / {
    return 204;
}
--- request
GET /
--- error_code: 204



=== TEST 4: no zone, and none needed
--- bare_http
--- config
kexec_keepalive 1s;
location / {
    return 204;
}
--- request
GET /
--- error_code: 204



=== TEST 5: an address in the place of an upstream
--- config
location / {
    kexec_pass http://127.0.0.1:$TEST_NGINX_JUPYTER_PORT;
    kexec_token secret;
}
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like: ^\{"id":"[0-9a-f-]{36}","language":"python","cwd":""\}$



=== TEST 6: the path of a Jupyter with a base_url
--- config
location / {
    kexec_pass http://jupyter/base/;
    kexec_token secret;
}
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 500
--- after
my @calls = jupyter_log(ev => "rest");
cmp_ok(scalar @calls, ">", 0, "Jupyter was called");
is(scalar(grep { $_->{path} !~ m{^/base/api/} } @calls), 0, "below /base");



=== TEST 7: the token is inherited
--- http
kexec_token secret;
--- config
location / {
    kexec_pass http://jupyter;
}
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like: "language":"python"



=== TEST 8: a location's token is its own
--- http
kexec_token wrong;
--- config
location / {
    kexec_pass http://jupyter;
    kexec_token secret;
}
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like: "language":"python"



=== TEST 9: a file in the location takes the place of a token
--- http
kexec_token wrong;
--- config
location / {
    kexec_pass http://jupyter;
    kexec_token_file $TEST_NGINX_SERVER_ROOT/html/token;
}
--- user_files eval
">>> token\n \tsecret \r\n\n"
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like: "language":"python"



=== TEST 10: a token in the location takes the place of a file
--- http
kexec_token_file $TEST_NGINX_SERVER_ROOT/html/token;
--- config
location / {
    kexec_pass http://jupyter;
    kexec_token secret;
}
--- user_files
>>> token
wrong
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like: "language":"python"



=== TEST 11: a token with variables
--- config
location / {
    kexec_pass http://jupyter;
    kexec_token $arg_a$arg_b;
}
--- request eval
["POST /contexts?a=sec&b=ret\n{}", "POST /contexts?a=wrong\n{}"]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 503]
--- response_body_like eval
[qr/"language":"python"/, qr/403|token/]



=== TEST 12: the default directory is inherited, and overridden
--- http
kexec_default_cwd /one;
--- config
location /a/ {
    kexec_pass http://jupyter;
    kexec_token secret;
}
location /b/ {
    kexec_pass http://jupyter;
    kexec_token secret;
    kexec_default_cwd /two;
}
--- request eval
["POST /a/contexts\n{}", "POST /b/contexts\n{}"]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[qr/"cwd":"\/one"/, qr/"cwd":"\/two"/]



=== TEST 13: variables are inherited as a whole, and replaced as a whole
--- http
kexec_env OUTER 1;
kexec_env BOTH 2;
--- config
location /a/ {
    kexec_pass http://jupyter;
    kexec_token secret;
}
location /b/ {
    kexec_pass http://jupyter;
    kexec_token secret;
    kexec_env BOTH 3;
}
--- request eval
[qq(POST /a/execute\n{"code": "env", "language": "python"}),
 qq(POST /b/execute\n{"code": "env", "language": "r"})]
--- more_headers
Content-Type: application/json
--- response_body_like eval
[qr/OUTER(?s:.*)BOTH(?s:.*)"end_of_execution"/,
 qr/^(?!(?s:.*)OUTER)(?s:.*)BOTH(?s:.*)"end_of_execution"/]



=== TEST 14: the limit of the code is inherited
--- http
kexec_max_code_size 5;
--- request eval
[qq(POST /execute\n{"code": "123456"}), qq(POST /execute\n{"code": "12345"})]
--- more_headers
Content-Type: application/json
--- error_code eval
[413, 200]
--- response_body_like eval
[qr/^The code has 6 bytes, 5 are allowed \(kexec_max_code_size\)$/,
 qr/"end_of_execution"/]



=== TEST 15: keepalives come as often as it says
--- http
kexec_keepalive 50ms;
--- request
POST /execute
{"code": "sleep 0.3\nprint x"}
--- more_headers
Content-Type: application/json
--- response_body_like eval
qr/^\{"type": "number_of_executions", "execution_count": 1\}
(\{"type": "keepalive"\}
){2,}\{"type": "stdout"/



=== TEST 16: one part of kexec_queue leaves the other at its default
--- location
kexec_queue timeout=1s;
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request
POST /execute
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like: "QueueTimeout"



=== TEST 17: kexec_queue size=0
--- location
kexec_queue size=0;
--- before
execute(code => "sleep 30");
jupyter_wait(ev => "start", "code~" => "sleep 30");
--- request
POST /execute
{"code": "print x"}
--- more_headers
Content-Type: application/json
--- error_code: 429
--- response_headers
Retry-After: 1
--- response_body chomp
The context's queue is full, 0 executions are waiting, try again later



=== TEST 18: inside limit_except
--- config
location / {
    kexec_pass http://jupyter;
    kexec_token secret;
    limit_except GET {
        deny all;
    }
}
--- request eval
["GET /contexts", "POST /contexts\n{}"]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 403]
--- response_body_like eval
[qr/^\[\]$/, qr/403 Forbidden/]
--- after
ok(logged("error.log", "access forbidden by rule"), "the rule is told");



=== TEST 19: an if in the location inherits what the location has
--- config
location / {
    kexec_pass http://jupyter;
    kexec_token secret;
    kexec_default_cwd /one;
    if ($arg_x) {
        add_header X-If yes;
    }
}
--- request
POST /contexts?x=1
{}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_headers
X-If: yes
--- response_body_like: "cwd":"/one"



=== TEST 20: a file of a token is inherited
--- http
kexec_token_file $TEST_NGINX_SERVER_ROOT/html/token;
--- config
location / {
    kexec_pass http://jupyter;
}
--- user_files
>>> token
secret
--- request
POST /contexts
{}
--- more_headers
Content-Type: application/json
--- error_code: 200
--- response_body_like: "language":"python"
