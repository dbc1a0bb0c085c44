package KexecTest;

# What the Test::Nginx suites share: the module, the scripted Jupyter Server,
# and sections of their own.
#
#     use lib "$FindBin::Bin/lib";
#     use KexecTest;                      # before Test::Nginx::Socket
#     use Test::Nginx::Socket 'no_plan';
#
#     KexecTest::setup();
#     run_tests();
#
# Every block gets the module, a zone, an upstream and a location for it, and
# asserts that nothing of [alert], [crit] and [emerg] was logged, its end
# included.  Sections:
#
#     location        lines for the location; "config" replaces all of it
#     http            lines for the http block; "bare_http" replaces the zone
#     jupyter         faults and options of the scripted Jupyter, JSON, set
#                     before nginx starts; jupyter_down: it is not there
#     context         a body of POST /contexts: $CTX stands for the id of such
#                     a context in requests and in what is expected of them
#     before, after   Perl, run when nginx is up, and after the last answer
#
# In "before" and "after" $block is the block and the functions below are
# there, Test::More's too.

use v5.10.1;
use strict;
use warnings;

use Cwd ();
use Exporter 'import';
use File::Basename ();
use File::Path ();
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use POSIX ();
use Test::More ();
use Time::HiRes ();

our @EXPORT = qw(http json create_context execute seen finish types jupyter
                 jupyter_log jupyter_wait logged wait_for);

our ($Top, $Name, $Owner, $Jupyter, $Port, $JupyterPort, $ControlPort);

our @Open;                              # what "before" and "after" opened

my $json = JSON::PP->new->canonical->allow_nonref;


# Outside of the range that the kernel gives to clients: nginx leaves its port
# for a moment between two blocks, and nobody must come by.

sub free_port {
    for (1 .. 1000) {
        my $port = 10000 + int rand 20000;

        return $port if IO::Socket::INET->new(Listen => 1, ReuseAddr => 1,
                                              LocalPort => $port);
    }

    die "no port: $!";
}


# Test::Nginx reads its environment when it is loaded.

BEGIN {
    $Top = Cwd::abs_path(File::Basename::dirname(__FILE__) . "/../..");
    $Name = File::Basename::basename($0, ".t");

    my $dir = "$Top/build/t";
    File::Path::make_path($dir);

    # to nginx itself NGINX means inherited sockets

    $ENV{TEST_NGINX_BINARY} //= $ENV{NGINX} // "/usr/sbin/nginx";
    delete $ENV{NGINX};

    $ENV{TEST_NGINX_SERVROOT} = "$dir/$Name-$$";
    $ENV{TEST_NGINX_LOG_LEVEL} //= "info";
    $ENV{TEST_NGINX_MODULE} //= Cwd::abs_path($ENV{MODULE} //
        "$Top/build/ngx_http_kexec_module.so");

    $Port = free_port();
    $JupyterPort = free_port();
    $ControlPort = free_port();

    $ENV{TEST_NGINX_PORT} = $ENV{TEST_NGINX_SERVER_PORT} = $Port;
    $ENV{TEST_NGINX_JUPYTER_PORT} = $JupyterPort;
}


my $upstream = <<'_EOC_';
    upstream jupyter {
        server 127.0.0.1:$TEST_NGINX_JUPYTER_PORT;
    }
_EOC_

my $zone = <<'_EOC_';
    kexec_zone kexec:1m;
    kexec_temp_path $TEST_NGINX_SERVER_ROOT/kexec_temp;
_EOC_

my $location = <<'_EOC_';
            kexec_pass http://jupyter;
            kexec_token secret;
            kexec_default_cwd /home;
_EOC_


sub setup {
    Test::Nginx::Socket::no_root_location();
    Test::Nginx::Socket::no_long_string();
    Test::Nginx::Socket::master_on();
    Test::Nginx::Socket::timeout(10);

    Test::More::BAIL_OUT("no $ENV{TEST_NGINX_MODULE}, make builds it")
        if !-e $ENV{TEST_NGINX_MODULE};

    start_jupyter();

    Test::Nginx::Socket::add_block_preprocessor(\&prepare);
    Test::Nginx::Socket::add_response_body_check(\&after);
}


# must_die: the [emerg] that says why is what the block is about

sub prepare {
    my ($block) = @_;

    $block->set_value("main_config", "load_module $ENV{TEST_NGINX_MODULE};\n"
                                     . ($block->main_config // ""));

    if (!defined $block->http_config) {
        $block->set_value("http_config",
                          $upstream . ($block->bare_http
                                       // $zone . ($block->http // "")));
    }

    if (!defined $block->config) {
        $block->set_value("config", "        location / {\n$location"
                                    . ($block->location // "")
                                    . "        }\n");
    }

    expand($block);

    if (defined $block->must_die) {
        $block->set_value("suppress_stderr", "");
        return;
    }

    if (!defined $block->no_error_log) {
        $block->set_value("no_error_log", "[alert]\n[crit]\n[emerg]");
    }

    $block->set_value("no_shutdown_error_log", "[alert]\n[crit]\n[emerg]");

    # the nginx before is gone by then, and the next one not there yet

    $block->set_value("post_setup_server_root",
                      'KexecTest::reset_jupyter($block)');

    $block->set_value("init", 'KexecTest::before($block)');
}


# what is said once holds for each of many requests

sub expand {
    my ($block) = @_;

    my $requests = $block->pipelined_requests // $block->request;

    return if ref $requests ne "ARRAY";

    for my $name (qw(error_code response_headers response_body
                     response_body_like))
    {
        my $value = $block->$name;

        if (defined $value && ref $value ne "ARRAY") {
            $block->set_value($name, [($value) x @$requests]);
        }
    }
}


sub reset_jupyter {
    my ($block) = @_;

    jupyter("up", {});
    jupyter("reset", { kernels => JSON::PP::true() });

    if (defined $block->jupyter) {
        jupyter("set", $json->decode($block->jupyter));
    }

    jupyter("down", {}) if defined $block->jupyter_down;
}


sub before {
    my ($block) = @_;

    if (defined $block->context) {
        my $id = create_context($json->decode($block->context));

        for my $name (qw(request pipelined_requests raw_request more_headers
                         response_body response_body_like before after))
        {
            my $value = $block->$name;

            if (defined $value) {
                $block->set_value($name, replace($value, '$CTX', $id));
            }
        }
    }

    run_code($block, "before");
}


sub after {
    my ($block, $body, $n, $repeated, $dry_run) = @_;

    my $requests = $block->pipelined_requests // $block->request;

    return if $dry_run || ref $requests eq "ARRAY" && $n < $#$requests;

    run_code($block, "after");

    close $_ for @Open;
    @Open = ();
}


sub run_code {
    my ($block, $section) = @_;

    my $code = $block->$section;

    return if !defined $code;

    my $name = $block->name;

    eval "package KexecTest::Block; use strict; use warnings;"
         . "BEGIN { Test::More->import; KexecTest->import }\n"
         . "#line 1 \"$section\"\n$code;\n1"
        or Test::More::fail("$name - $section: $@");
}


sub replace {
    my ($value, $from, $to) = @_;

    if (ref $value eq "ARRAY") {
        return [map { replace($_, $from, $to) } @$value];
    }

    $value =~ s/\Q$from\E/$to/g if !ref $value;

    return $value;
}


# ---- the scripted Jupyter

sub start_jupyter {
    pipe(my $in, my $out) or die "pipe: $!";

    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        open STDOUT, ">&", $out or die "dup: $!";
        exec "/usr/bin/python3", "$Top/t/lib/scripted_jupyter.py",
             "--port", $JupyterPort, "--control-port", $ControlPort,
             "--token", "secret", "--with-parent"
            or POSIX::_exit(127);
    }

    close $out;

    $Owner = $$;
    $Jupyter = $pid;

    my $line = <$in> // "";

    die "the scripted Jupyter does not start" if $line ne "ready\n";
}


# nginx has ended by then; the logs of what failed stay

END {
    if ($Jupyter && $$ == $Owner) {
        local $?;

        kill "TERM", $Jupyter;
        waitpid $Jupyter, 0;

        if (Test::More->builder->is_passing) {
            File::Path::remove_tree($ENV{TEST_NGINX_SERVROOT});
        }
    }
}


# a call of its control interface; a body makes it a POST

sub jupyter {
    my ($call, $body) = @_;

    my $answer = http(defined $body ? "POST" : "GET", "/_control/$call",
                      $body, port => $ControlPort, timeout => 30);

    die "/_control/$call: $answer->{body}" if $answer->{status} != 200;

    return $json->decode($answer->{body});
}


# its log's records with these values

sub jupyter_log {
    my (%match) = @_;

    my @found;

    for my $record (@{ jupyter("log") }) {
        my @same = grep { ($record->{$_} // "") eq $match{$_} } keys %match;
        push @found, $record if @same == keys %match;
    }

    return @found;
}


# waits for such a record; a name with ~ behind it takes a part of the value

sub jupyter_wait {
    my (%match) = @_;

    my $answer = jupyter("wait", { match => \%match, timeout => 10 });

    die "nothing like " . $json->encode(\%match) . " in Jupyter's log"
        if !$answer->{found};

    return $answer->{records}[0];
}


# ---- requests of "before" and "after"

# body: text, or a value for JSON

sub send_request {
    my ($method, $path, $body, %arg) = @_;

    my $sock = connect_to($arg{port} // $Port);

    my $head = "$method $path HTTP/1.1\r\nHost: localhost\r\n"
               . "Connection: close\r\n";

    if (defined $body) {
        if (ref $body) {
            $body = $json->encode($body);
            $head .= "Content-Type: application/json\r\n";
        }

        $head .= "Content-Length: " . length($body) . "\r\n";
    }

    print $sock $head, $arg{headers} // "", "\r\n", $body // "";

    return $sock;
}


sub connect_to {
    my ($port) = @_;

    my $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port",
                                     Timeout => 10)
        or die "connect to $port: $!";

    push @Open, $sock;

    return $sock;
}


sub read_answer {
    my ($sock, $timeout) = @_;

    my $answer;

    fill($sock, sub { $answer = parse_answer($_[0]) }, $timeout);

    return $answer;
}


# waits until what came so far looks like this, and leaves it to be read again

sub seen {
    my ($sock, $pattern) = @_;

    return fill($sock, sub { $_[0] =~ $pattern });
}


sub fill {
    my ($sock, $enough, $timeout) = @_;

    my $raw = \(${*$sock}{kexec} //= "");
    my $select = IO::Select->new($sock);
    my $end = Time::HiRes::time() + ($timeout // 10);

    until ($enough->($$raw)) {
        my $left = $end - Time::HiRes::time();

        if ($left <= 0 || !$select->can_read($left)) {
            die "not in time, only: $$raw";
        }

        sysread($sock, $$raw, 65536, length $$raw)
            or die "the answer breaks off: $$raw";
    }

    return $$raw;
}


# nothing as long as it is not complete

sub parse_answer {
    my ($raw) = @_;

    my ($head, $body) = split /\r\n\r\n/, $raw, 2;

    return if !defined $body;

    my ($line, @headers) = split /\r\n/, $head;
    my %headers = map { /^(.*?): *(.*)$/ ? (lc $1, $2) : () } @headers;

    if (($headers{"transfer-encoding"} // "") eq "chunked") {
        $body = unchunk($body) // return;

    } elsif (length $body < ($headers{"content-length"} // 0)) {
        return;
    }

    return { status => (split / /, $line)[1], headers => \%headers,
             body => $body };
}


sub unchunk {
    my ($raw) = @_;

    my $body = "";

    while ($raw =~ s/^([0-9a-f]+)\r\n//i) {
        my $size = hex $1;

        return $body if $size == 0;
        return if length $raw < $size + 2;

        $body .= substr($raw, 0, $size);
        substr($raw, 0, $size + 2) = "";
    }

    return;
}


# an answer: { status, headers, body }

sub http {
    my ($method, $path, $body, %arg) = @_;

    return read_answer(send_request($method, $path, $body, %arg),
                       $arg{timeout});
}


sub json {
    my ($text) = @_;

    return $json->decode($text);
}


sub create_context {
    my ($body) = @_;

    my $answer = http("POST", "/contexts", $body // {});

    die "POST /contexts: $answer->{status} $answer->{body}"
        if $answer->{status} != 200;

    return $json->decode($answer->{body})->{id};
}


# sends a POST /execute whose answer finish() reads; to close the handle is to
# leave, which the end of the block does for all that is still open

sub execute {
    my (%body) = @_;

    return send_request("POST", "/execute", \%body);
}


# the events of an execution, without keepalives

sub finish {
    my ($sock) = @_;

    my $answer = read_answer($sock);

    die "status $answer->{status}: $answer->{body}"
        if $answer->{status} != 200;

    return [grep { $_->{type} ne "keepalive" }
            map { $json->decode($_) } split /\n/, $answer->{body}];
}


sub types {
    my ($events) = @_;

    return join " ", map { $_->{type} } @$events;
}


# waits until access.log or error.log has a line

sub logged {
    my ($file, $pattern) = @_;

    my $path = "$ENV{TEST_NGINX_SERVROOT}/logs/$file";

    return wait_for("$pattern in $file", sub {
        open my $in, "<", $path or return;
        my @lines = grep { /$pattern/ } <$in>;
        return @lines ? $lines[0] : undef;
    });
}


# for what no event tells; the value, or it dies after ten seconds

sub wait_for {
    my ($what, $test) = @_;

    my $end = Time::HiRes::time() + 10;

    while (1) {
        my $value = $test->();

        return $value if $value;

        die "waited for $what" if Time::HiRes::time() > $end;

        Time::HiRes::sleep(0.02);
    }
}


1;
