#!/bin/bash
#
# Puts the npm packages that the kernel for JavaScript and TypeScript wants
# into build/node, where tools/server.sh finds them.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
node=$top/build/node

# npm is started only when the pinned versions changed.

cmp -s "$top/tools/node/package-lock.json" "$node/installed" && exit

echo "node: installing npm packages in $node"

mkdir -p "$node"
cp "$top"/tools/node/package*.json "$top/tools/node/.npmrc" "$node/"

# The log level: one of them asks for a newer node than it needs.

(cd "$node" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error)

cp "$node/package-lock.json" "$node/installed"
