#!/bin/bash
# Compiles the public model layers of layers.txt with their import line changed, and writes and reads data of each of their models.
#
#   run.sh [OWNER/NAME ...]    all layers, or the named ones
#
# LAYERS names a folder of clones: OWNER+NAME or OWNER+NAME/repo. Commits that are not there are fetched from github.com. The package that
# is compiled is in .build/model-layers, with one target per layer. The status is 1 if a layer fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/.build/model-layers
rm -rf "$work/Sources" "$work/logs"
mkdir -p "$work/Sources" "$work/logs" "$work/clones"
cp -R "$here/RoundTrip" "$here/Scan" "$work/Sources"

target_of() { tr -c 'A-Za-z0-9\n' _ <<< "$1"; }

# Prints the git directory of a repository that contains a commit.
clone_of() {
    local name=${1/\//+} folder
    for folder in ${LAYERS:+"$LAYERS/$name" "$LAYERS/$name/repo"} "$work/clones/$name"; do
        if git -C "$folder" cat-file -e "$2^{commit}" 2>/dev/null; then echo "$folder"; return; fi
    done
    git init --quiet --bare "$work/clones/$name"
    git -C "$work/clones/$name" fetch --quiet --depth 1 "https://github.com/$1" "$2"
    echo "$work/clones/$name"
}

# Prints the lines of one kind for a layer, without the kind.
entries() {
    awk -v layer="$1" -v kind="$2" '
        $1 == "layer" { on = $2 == layer }
        on && $1 == kind { sub(/^[a-z]+ /, ""); print }' "$here/layers.txt"
}

# Prints the paths of the Swift files of a layer: layer, commit, clone.
paths() {
    entries "$1" files | while read -r path; do git -C "$3" ls-tree -rz --name-only "$2" -- "$path" | tr '\0' '\n'; done \
        | grep '\.swift$' | grep -vxFf <(entries "$1" without | sed 's/: .*//')
}

layers=$(awk '$1 == "layer" { print $2, $3 }' "$here/layers.txt")
if [ $# -gt 0 ]; then layers=$(grep -F "$(printf '%s \n' "$@")" <<< "$layers"); fi

# Copies the files. Their paths become names, because the names of a target's files must differ.
targets="" modules=""
while read -r layer commit; do
    target=$(target_of "$layer")
    clone=$(clone_of "$layer" "$commit")
    mkdir "$work/Sources/$target"
    paths "$layer" "$commit" "$clone" | while read -r path; do
        git -C "$clone" show "$commit:$path" | sed 's/^\([^/]*\)import SwiftData\([[:space:]]*\)$/\1import StrataSwiftData\2/' \
            > "$work/Sources/$target/${path//\//_}"
    done
    { echo "import StrataSwiftData"; entries "$layer" instead; } > "$work/Sources/$target/Instead.swift"
    dependencies='"RoundTrip", .product(name: "StrataSwiftData", package: "strata")' aliases=""
    for module in $(entries "$layer" empty); do
        dependencies+=", \"Empty$module\"" aliases+="\"-module-alias\", \"$module=Empty$module\", " modules+="Empty$module"$'\n'
    done
    targets+="        .executableTarget("$'\n'"            name: \"$target\", dependencies: [$dependencies],"$'\n'
    targets+="            swiftSettings: [.unsafeFlags([$aliases])]),"$'\n'
done <<< "$layers"
# Empty modules have other names than Apple's, because Strata's own sources ask for SwiftUI.
for module in $(sort -u <<< "$modules"); do
    mkdir "$work/Sources/$module"
    echo "// Empty." > "$work/Sources/$module/$module.swift"
    targets+="        .target(name: \"$module\"),"$'\n'
done

cat > "$work/Package.swift" <<END
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "model-layers", platforms: [.macOS(.v15)], dependencies: [.package(name: "strata", path: "$root")],
    targets: [
        .executableTarget(name: "Scan", swiftSettings: [.swiftLanguageMode(.v6)]),
        .target(
            name: "RoundTrip",
            dependencies: [.product(name: "StrataSwiftData", package: "strata"), .product(name: "ObjectGraph", package: "strata")],
            swiftSettings: [.swiftLanguageMode(.v6)]),
$targets    ], swiftLanguageModes: [.v5])
END

unset STRATA_NO_MACROS
cd "$work"
swift build --quiet --product Scan
swift build --quiet --target RoundTrip
failed=0
while read -r layer commit; do
    target=$(target_of "$layer")
    program=$(.build/debug/Scan "$layer" "Sources/$target"/*.swift)
    echo "$program" > "Sources/$target/main.swift"
    if ! swift build --quiet --product "$target" > "logs/$target.log" 2>&1; then
        echo "✘ $layer does not compile:"
        grep '^/.* error:' "logs/$target.log" | sort -u | head -20
    elif ! ".build/debug/$target" 2>> "logs/$target.log" | grep -E '^(✔|✘|  )'; then
        echo "✘ $layer does not keep its data"
        grep -m 1 'Fatal error' "logs/$target.log" || tail -n 3 "logs/$target.log"
    else
        continue
    fi
    failed=$((failed + 1))
done <<< "$layers"
echo "$(wc -l <<< "$layers") layers, $failed failed. The logs are in .build/model-layers/logs."
test $failed = 0
