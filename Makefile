# make run      installs what is missing, builds, and runs the module in front
#               of a Jupyter Server until Ctrl-C
# make deps     installs what the tests need; "make test" does that itself
# make quick    what is tested before each commit, in three minutes
# make test     everything that is tested, but the packages and the image
# make test-busy
#               the same twice in a row, beside four busy loops
# make rooms    calls between the rooms of the sources, and what goes against
#               their order
# make model    goes on where the tests' model of an execution ends, for hours
# make bench    measures, and writes docs/benchmarks.md
# make deb      Debian packages for the release of this machine, in build/deb
# make test-deb packages for Debian 12 and 13, installed, upgraded and purged
# make image    the sandbox image, docker/Dockerfile, with buildah (as root)
# make test-image
#               starts that image and tests what it promises, and boots a
#               machine image made from it
#
# make fuzz     each fuzzer for a minute; t/fuzz/controls.sh: broken code that
#               they find
# make sanitize, make valgrind, make analyze   docs/analysis.md has more
# make test-trixie, make test-sid   Debian 13 and sid, the latter compiled only
#
# Variables are handed on to the scripts: BUILD_DIR, CC, CC_OPT, LD_OPT to
# tools/build.sh, PORT, JUPYTER_PORT, WORKERS, RUN_DIR and more to
# tools/server.sh; each script's head lists its own.

all: build

build:
	@tools/build.sh

run: deps-run build
	@tools/server.sh run

start: deps-run build
	@tools/server.sh start

stop:
	@tools/server.sh stop

deps-run:
	@tools/deps.sh run

deps:
	@tools/deps.sh test

test: deps build style
	@test -x t/run || { echo "make test: there is no t/run" >&2; exit 1; }
	t/run

quick: deps build style
	t/run --quick

test-busy: deps build style
	t/busy

style:
	@tools/style.sh

rooms:
	@tools/rooms

unit:
	$(MAKE) -C t/unit

model:
	$(MAKE) -C t/model whole

golden: build
	t/golden/run

# SECONDS: how long

soak: build
	t/soak $(SECONDS)

test-sdk: deps build
	t/sdk/run

rounds: build
	t/rounds

# BENCH: options of bench/run.py, such as --quick or --only PART

bench: deps-run
	@bench/run.py $(BENCH)

deb:
	@tools/deps.sh deb
	@tools/deb.sh

test-deb:
	@tools/deps.sh test-deb
	t/deb/run

image:
	@tools/deps.sh image
	@tools/image.sh

test-image:
	@tools/deps.sh image
	t/image/run
	@IMAGE=ngx-kexec-vm DOCKERFILE=t/image/vm.Dockerfile tools/image.sh
	t/image/vm

fuzz:
	$(MAKE) -C t/fuzz SECONDS=60

sanitize:
	@tools/deps.sh check
	t/watched sanitize

valgrind: build
	@tools/deps.sh check
	t/watched valgrind

analyze: build
	@tools/deps.sh check
	tools/analyze.sh

test-trixie:
	@tools/deps.sh test-deb
	t/trixie

test-sid:
	@tools/deps.sh check
	tools/sid.sh

clean:
	rm -rf build

.PHONY: all build run start stop deps-run deps quick test test-busy style rooms \
        unit model golden test-sdk soak rounds bench deb test-deb image \
        test-image fuzz sanitize valgrind analyze test-trixie test-sid clean
