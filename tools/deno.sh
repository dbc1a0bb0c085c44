#!/bin/bash
#
# Puts Deno into build/node and its kernels for JavaScript and TypeScript into
# build/jupyter, where tools/server.sh finds them.  Nothing outside of the
# tree is touched, the user's home included.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
node=$top/build/node
kernels=$top/build/jupyter/kernels

# npm copies only when the pinned version changed.

if ! cmp -s "$top/tools/node/package-lock.json" "$node/installed"; then
    echo "deno: installing the kernels for JavaScript and TypeScript"

    mkdir -p "$node"
    cp "$top/tools/node/package.json" "$top/tools/node/package-lock.json" \
       "$top/tools/node/.npmrc" "$node/"

    # Deno's install script only moves the binary; it is run where it is.

    (cd "$node" && npm ci --no-audit --no-fund --ignore-scripts)

    cp "$node/package-lock.json" "$node/installed"
fi

set -- "$node"/node_modules/@deno/*/deno
[ -x "$1" ] || { echo "deno: no deno for this machine" >&2; exit 1; }

# No "deno jupyter --install": that one writes to the user's home.

for language in javascript typescript; do
    spec=$kernels/$language/kernel.json
    mkdir -p "${spec%/*}"

    cat > "$spec.new" << END
{
    "argv": ["$1", "jupyter", "--kernel", "--conn", "{connection_file}"],
    "display_name": "Deno ($language)",
    "env": {"NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1"},
    "language": "$language"
}
END
    cmp -s "$spec.new" "$spec" || mv "$spec.new" "$spec"
    rm -f "$spec.new"
done
