import Testing

@Suite struct LayerTests {
    @Test func everyModuleStandsInTheTable() {
        #expect(Set(Repository.modules.keys) == Set(LayerTable.modules.map(\.name)))
    }

    @Test(arguments: LayerTable.modules.map(\.name))
    func aModuleImportsOnlyWhatLiesBelowIt(name: String) throws {
        let module = try #require(LayerTable.module(name))
        let allowed = module.below.union(module.outside).union(LayerTable.system)
        for file in Repository.modules[name] ?? [] {
            for found in file.imports where !allowed.contains(found.module) {
                Issue.record("\(file.path):\(found.line): \(name) may not import \(found.module)")
            }
        }
    }

    @Test func aCLibraryHasOneImporterThatKeepsItInside() {
        for (name, files) in Repository.modules {
            for file in files {
                for found in file.imports {
                    guard let importer = LayerTable.cLibraryImporters[found.module] else { continue }
                    #expect(name == importer, "\(file.path):\(found.line): only \(importer) imports \(found.module)")
                    #expect(found.access == "internal", "\(file.path):\(found.line): write `internal import \(found.module)`")
                }
            }
        }
    }

    @Test func onlyThePlatformTellsSystemsApart() {
        for (name, files) in Repository.modules where name != "Platform" {
            for file in files {
                for found in file.imports where LayerTable.cLibraries.contains(found.module) {
                    Issue.record("\(file.path):\(found.line): only Platform imports \(found.module)")
                }
                // A public import would expose the C library's names to users of the package.
                for found in file.imports where found.module == "Platform" && !["internal", "package"].contains(found.access) {
                    Issue.record("\(file.path):\(found.line): write `internal import Platform`")
                }
            }
        }
    }

    /// Foundation adds ICU and seven more megabytes of memory to every program that imports the library. `StrataSwiftData` needs it for
    /// sort descriptors, and exports it as SwiftData does. The command line tool and its page are a program, whose argument
    /// parser needs it.
    @Test func theLibraryUsesFoundationOnlyWhereItsEssentialsAreMissing() {
        let others: Set = ["SQLiteStore", "StrataMacros", "StrataSwiftData", "StrataStudio", "StrataTool", "strata-tool"]
        for (name, files) in Repository.modules where !others.contains(name) {
            for file in files where file.imports.contains(where: { $0.module == "Foundation" }) {
                // Programs on Apple's systems have Foundation loaded already.
                let conditions = ["canImport(FoundationEssentials)", "canImport(Darwin)"]
                #expect(
                    conditions.contains { !file.codeLines(with: $0).isEmpty },
                    "\(file.path): import FoundationEssentials where it exists")
            }
        }
    }

    /// The product knows the protocol `RequestRoute`, and SQLite's connections.
    @Test func `no source of the product names the emulation of Core Data's routing`() {
        let names = ["CoreDataRouting", "AncestorRoute", "AncestorSnapshot", "KeptRows", "RequestHop", "Routing", "routing"]
        for file in Repository.swiftFiles where file.path.hasPrefix("Sources/") {
            for (number, line) in file.lines.enumerated() where names.contains(where: line.holds) {
                Issue.record("\(file.path):\(number + 1): belongs in Benchmarks/CoreDataRouting: \(line)")
            }
        }
    }

    /// The first commands that a new user runs must not wait for swift-syntax. `Peers` is in the manifest for `make peers` only.
    @Test func benchmarksAndFuzzTargetsDoNotUseMacros() throws {
        let peers = "Benchmarks/Sources/Peers/"
        for file in Repository.swiftFiles where file.path.hasPrefix("Benchmarks/Sources") || file.path.hasPrefix("fuzz/") {
            for found in file.imports where ["Strata", "StrataMacros", "GRDB"].contains(found.module) {
                #expect(
                    file.path.hasPrefix(peers),
                    "\(file.path):\(found.line): imports \(found.module), which takes minutes to compile")
            }
        }
        let manifest = SourceFile(path: "Benchmarks/Package.swift", root: Repository.root)
        let condition = try #require(manifest.lines.firstIndex(of: "if withPeers {"))
        for (number, line) in manifest.lines.enumerated() where line.contains("GRDB.swift") || line.contains(#"name: "Strata""#) {
            #expect(number > condition, "Benchmarks/Package.swift:\(number + 1): outside of `if withPeers`")
        }
    }
}
