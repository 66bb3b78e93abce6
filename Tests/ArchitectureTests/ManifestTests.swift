import Testing

struct ManifestTarget {
    var name: String
    /// Targets of the same package.
    var dependencies: [String]
    var products: [String]
}

extension SourceFile {
    /// The targets in the order of a manifest.
    var manifestTargets: [ManifestTarget] {
        let text = lines.map { $0.prefix(upTo: $0.firstRange(of: "//")?.lowerBound ?? $0.endIndex) }.joined(separator: " ")
        let starts = text.ranges(of: /\.(?:systemLibrary|target|macro|testTarget|executableTarget)\(\s*name:\s*"/)
        return starts.enumerated().map { index, start in
            let end = index + 1 < starts.count ? starts[index + 1].lowerBound : text.endIndex
            let body = text[start.upperBound..<end]
            let name = String(body.prefix { $0 != "\"" })
            guard let list = body.firstMatch(of: /dependencies:\s*\[((?:[^\[\]]|\[[^\]]*\])*)\]/)?.1 else {
                return ManifestTarget(name: name, dependencies: [], products: [])
            }
            let products = list.matches(of: /\.product\(name:\s*"([^"]+)",[^)]*\)/).map { String($0.1) }
            let own = list.replacing(/\.product\([^)]*\)/, with: "").matches(of: /"([^"]+)"/).map { String($0.1) }
            return ManifestTarget(name: name, dependencies: own, products: products)
        }
    }
}

@Suite struct ManifestTests {
    private let targets = Repository.manifest.manifestTargets

    @Test func targetsStandInTheOrderOfTheLayers() {
        var seen: Set<String> = []
        for target in targets {
            for name in target.dependencies where !seen.contains(name) {
                Issue.record("Package.swift: \(target.name) depends on \(name), which stands below it")
            }
            seen.insert(target.name)
        }
        #expect(seen.isSuperset(of: LayerTable.modules.map(\.name)))
    }

    @Test func theManifestAllowsNoMoreThanTheLayerTable() throws {
        for module in LayerTable.modules {
            let target = try #require(targets.first { $0.name == module.name })
            let allowed = module.below.union(module.outside).union(module.name.hasPrefix("Strata") ? ["StrataMacros"] : [])
            #expect(allowed.isSuperset(of: target.dependencies), "\(module.name) depends on \(target.dependencies)")
            #expect(allowed.isSuperset(of: target.products), "\(module.name) depends on \(target.products)")
        }
    }

    /// The command line tool shows that the public API is enough for programs.
    @Test func theToolCannotUseWhatIsNotPublic() {
        let lines = Repository.manifest.lines
        for name in ["StrataStudio", "StrataTool", "strata-tool"] {
            let start = lines.firstIndex { $0.contains("name: \"\(name)\", dependencies") || $0.contains("name: \"\(name)\",") }
            let target = start.map { lines[$0...].prefix(8).joined() } ?? ""
            #expect(target.contains("packageAccess: false"), "\(name)")
        }
    }

    /// Programs that use a library do not build the parser of the tool's arguments.
    @Test func onlyTheToolNeedsTheArgumentParser() {
        let users = targets.filter { $0.products.contains("ArgumentParser") }.map(\.name)
        #expect(users == ["StrataTool"])
        #expect(
            targets.filter { $0.dependencies.contains("StrataTool") && !$0.name.hasSuffix("Tests") }.map(\.name) == [
                "strata-tool"
            ])
    }

    /// Another one among the tests that `make test` builds together would make SwiftPM compile every library twice again.
    @Test func `only the tests that are built apart test the macros themselves`() {
        let users = targets.filter { $0.dependencies.contains("StrataMacros") && $0.name.hasSuffix("Tests") }.map(\.name)
        #expect(users == ["StrataMacrosTests"])
    }

    /// Programs that use a library do not build the server of the tool's page.
    @Test func `only the page of the tool needs a server`() {
        let users = targets.filter { $0.products.contains { $0.hasPrefix("NIO") } }.map(\.name)
        #expect(users == ["StrataStudio"])
        let above = targets.filter { $0.dependencies.contains("StrataStudio") && !$0.name.hasSuffix("Tests") }.map(\.name)
        #expect(above == ["StrataTool"])
    }

    /// The benchmarks and tests compare with Core Data's routing. Programs do not.
    @Test func `only tests depend on the emulation of Core Data's routing`() {
        let users = targets.filter { $0.dependencies.contains("CoreDataRouting") }.map(\.name)
        #expect(!users.isEmpty)
        for name in users where name != "TestSupport" { #expect(name.hasSuffix("Tests"), "\(name)") }
    }

    @Test func importingStrataBuildsNoSQLite() throws {
        var closure: Set<String> = []
        var open = ["Strata"]
        while let name = open.popLast() {
            guard closure.insert(name).inserted else { continue }
            open += targets.first { $0.name == name }?.dependencies ?? []
        }
        #expect(closure.contains("LMDB"))
        #expect(!closure.contains("SQLiteStore"))
        #expect(!closure.contains("CSQLite"))
    }
}
