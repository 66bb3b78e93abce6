#!/bin/bash
# Shows that the leaks of Tests/leaks.txt are not those of Strata: each program of this folder, which has nothing of Strata, has the leak
# that its first line names, and no other. The status is 1 if one has not, or if a leak has no program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suppressions=$here/../leaks.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "✘ $1" >&2; failed=1; }

for source in "$here"/*.swift; do
    name=$(basename "$source" .swift)
    leak=$(head -1 "$source" | sed 's|^// ||')
    # The linker warns of the sanitizer's own symbols.
    swiftc -swift-version 6 -parse-as-library -sanitize=address -g "$source" -o "$work/$name" 2>"$work/$name.out" \
        || { cat "$work/$name.out" >&2; exit 1; }
    if "$work/$name" >"$work/$name.out" 2>&1; then
        fail "$name leaks nothing. Remove it, and $leak from leaks.txt"
    elif ! grep -q "LeakSanitizer: detected memory leaks" "$work/$name.out" || ! grep -q "${leak#leak:}" "$work/$name.out"; then
        fail "$name has another fault than $leak:"
        cat "$work/$name.out" >&2
    elif ! LSAN_OPTIONS=suppressions=$suppressions:print_suppressions=0 "$work/$name" >"$work/$name.out" 2>&1; then
        fail "$name has a leak besides $leak:"
        cat "$work/$name.out" >&2
    else
        echo "✔ $leak: $name"
    fi
done
while read -r leak; do
    grep -qx "// $leak" "$here"/*.swift || fail "no program of $here has the leak $leak"
done < <(grep '^leak:' "$suppressions")
exit "$failed"
