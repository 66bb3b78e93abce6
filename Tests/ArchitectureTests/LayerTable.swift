/// The modules that each module may import. Imports go downward only, and each C library has one importer.
enum LayerTable {
    struct Module {
        var name: String
        /// Modules of this package.
        var below: Set<String>
        /// Modules of packages, and C libraries.
        var outside: Set<String> = []
    }

    /// Lowest layer first.
    static let modules: [Module] = [
        Module(name: "Platform", below: [], outside: cLibraries.union(["CPlatform"])),
        Module(name: "LMDB", below: ["Platform"], outside: ["CLMDB"]),
        Module(name: "StoreModel", below: ["Platform"]),
        Module(name: "StoreFiles", below: ["StoreModel", "Platform"]),
        Module(name: "StoreInterface", below: ["StoreModel", "StoreFiles"]),
        Module(name: "PageCodec", below: ["StoreInterface", "StoreModel", "Platform"], outside: ["CZstd"]),
        Module(name: "StoreContract", below: ["StoreInterface", "StoreModel"]),
        Module(name: "MemoryStore", below: ["StoreInterface", "StoreModel", "Platform"], outside: ["HashTreeCollections"]),
        Module(name: "LMDBStore", below: ["PageCodec", "StoreFiles", "StoreInterface", "StoreModel", "LMDB", "Platform"]),
        Module(name: "SQLiteStore", below: ["StoreFiles", "StoreInterface", "StoreModel", "Platform"], outside: ["CSQLite"]),
        Module(
            name: "ObjectGraph", below: ["StoreInterface", "StoreModel", "Platform"],
            outside: ["Logging", "CoreMetrics", "Tracing", "DequeModule", "HashTreeCollections", "OrderedCollections"]),
        Module(name: "Datasets", below: ["ObjectGraph", "SQLiteStore", "StoreInterface", "StoreModel", "Platform"]),
        Module(name: "CoreDataRouting", below: ["ObjectGraph", "SQLiteStore", "StoreInterface", "StoreModel", "Platform"]),
        Module(
            name: "StrataStudio", below: ["ObjectGraph", "StoreInterface", "StoreModel"],
            outside: ["NIOConcurrencyHelpers", "NIOCore", "NIOPosix", "NIOHTTP1"]),
        Module(
            name: "StrataTool",
            below: [
                "Datasets", "ObjectGraph", "LMDBStore", "SQLiteStore", "StoreFiles", "StoreInterface", "StoreModel",
                "StrataStudio",
            ],
            outside: ["ArgumentParser"]),
        Module(name: "strata-tool", below: ["StrataTool"], outside: ["Logging"]),
        Module(
            name: "StrataMacros", below: [],
            outside: [
                "SwiftCompilerPlugin", "SwiftDiagnostics", "SwiftIfConfig", "SwiftSyntax", "SwiftSyntaxBuilder",
                "SwiftSyntaxMacroExpansion", "SwiftSyntaxMacros",
            ]),
        Module(name: "Strata", below: ["ObjectGraph", "LMDBStore", "MemoryStore", "StoreFiles", "StoreInterface", "StoreModel"]),
        Module(
            name: "StrataSwiftData",
            below: ["ObjectGraph", "LMDBStore", "MemoryStore", "SQLiteStore", "StoreInterface", "StoreModel", "Platform"],
            outside: ["Logging"]),
    ]

    /// Modules of the compiler and the system, which any module may import.
    static let system: Set<String> = [
        "Swift", "Synchronization", "FoundationEssentials", "Foundation", "Dispatch", "Observation", "SwiftUI",
    ]

    /// The C libraries of the systems. Only `Platform` may import them.
    static let cLibraries: Set<String> = ["Glibc", "Musl", "Darwin"]

    static let cLibraryImporters = ["CLMDB": "LMDB", "CZstd": "PageCodec", "CSQLite": "SQLiteStore", "CPlatform": "Platform"]

    static func module(_ name: String) -> Module? { modules.first { $0.name == name } }
}

struct Import {
    var module: String
    /// The access level as written (`public`, `package`, `internal`…), or nil if none is written.
    var access: String?
    /// Counted from 1.
    var line: Int
}

extension SourceFile {
    var imports: [Import] {
        let declaration =
            /^\s*(?:@[\w]+(?:\([^)]*\))?\s+)*(?:(public|package|internal|fileprivate|private)\s+)?(?:@[\w]+\s+)*import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)/
        return codeLines(with: "import").compactMap { number, line in
            guard let match = line.firstMatch(of: declaration) else { return nil }
            return Import(module: String(match.2), access: match.1.map(String.init), line: number)
        }
    }
}
