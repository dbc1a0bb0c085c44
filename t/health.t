# GET /health

use FindBin;
use lib "$FindBin::Bin/lib";
use KexecTest;
use Test::Nginx::Socket 'no_plan';

KexecTest::setup();
run_tests();

__DATA__

=== TEST 1: no default contexts: as soon as Jupyter answers
--- request
GET /health
--- response_headers
Content-Type: application/json
Content-Length: 4
--- response_body chomp
"OK"
