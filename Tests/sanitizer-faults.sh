#!/bin/bash
# Shows which reports of a sanitizer are those of Swift and Foundation. Each program has nothing of Strata.
#
#   sanitizer-faults.sh address    the programs of Leaks: each has the leak of leaks.txt that its first line names, and no other
#   sanitizer-faults.sh thread     the programs of Races: each has a race that is none, for which Strata takes another way in Platform
#
# The status is 1 if a program has no such report, or if a leak of leaks.txt has no program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sanitizer=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "✘ $1" >&2; failed=1; }

case $sanitizer in
address) folder=$here/Leaks title="LeakSanitizer: detected memory leaks" ;;
thread) folder=$here/Races title="WARNING: ThreadSanitizer" ;;
*) echo "unknown sanitizer $sanitizer: use address or thread" >&2; exit 2 ;;
esac
suppressions=$here/leaks.txt

for source in "$folder"/*.swift; do
    name=$(basename "$source" .swift)
    fault=$(head -1 "$source" | sed 's|^// ||')
    # The linker warns of the sanitizer's own symbols.
    swiftc -swift-version 6 -parse-as-library "-sanitize=$sanitizer" -g "$source" -o "$work/$name" 2>"$work/$name.out" \
        || { cat "$work/$name.out" >&2; exit 1; }
    if "$work/$name" >"$work/$name.out" 2>&1; then
        fail "$name has no fault any more. Remove it, and what it explains: $fault"
    elif ! grep -q "$title" "$work/$name.out" || ! grep -q "${fault#leak:}" "$work/$name.out"; then
        fail "$name has another fault than $fault:"
        cat "$work/$name.out" >&2
    elif [ "$sanitizer" = address ] \
        && ! LSAN_OPTIONS="suppressions='$suppressions':print_suppressions=0" "$work/$name" >"$work/$name.out" 2>&1; then
        fail "$name has a leak besides $fault:"
        cat "$work/$name.out" >&2
    else
        echo "✔ $fault: $name"
    fi
done
if [ "$sanitizer" = address ]; then
    while read -r leak; do
        grep -qx "// $leak" "$folder"/*.swift || fail "no program of $folder has the leak $leak"
    done < <(grep '^leak:' "$suppressions")
fi
exit "$failed"
