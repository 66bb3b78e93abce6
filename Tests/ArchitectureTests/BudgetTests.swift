import Testing

/// Limits on the size of files, functions and folders, so that a reader can keep each in mind.
@Suite struct BudgetTests {
    @Test func noFileIsLongerThanItsBudget() {
        for file in Repository.swiftFiles {
            let budget = file.isTest ? 800 : 600
            #expect(file.lineCount <= budget, "\(file.path) has \(file.lineCount) lines; the budget is \(budget)")
        }
    }

    @Test func noFunctionIsLongerThanItsBudget() {
        for file in Repository.swiftFiles {
            for function in file.functions where function.length > 60 {
                Issue.record("\(file.path):\(function.line): \(function.name) has \(function.length) lines; the budget is 60")
            }
        }
    }

    @Test func noFolderHoldsMoreFilesThanItsBudget() {
        let folders = Dictionary(grouping: Repository.swiftFiles) {
            $0.path.split(separator: "/").dropLast().joined(separator: "/")
        }
        for (folder, files) in folders.sorted(by: { $0.key < $1.key }) {
            #expect(files.count <= 15, "\(folder) holds \(files.count) files; the budget is 15. Sort them into folders")
        }
    }

    /// An author of another store reads these files. What a store gets without writing it is in `Defaults`.
    @Test func theProtocolsOfAStoreAreShort() {
        let files = Repository.modules["StoreInterface"] ?? []
        let protocols = files.filter { !$0.path.contains("/Defaults/") }
        #expect(protocols.count > 5)
        #expect(protocols.reduce(0) { $0 + $1.lineCount } <= 600)
    }

    /// It shows authors of other stores how little they must write.
    @Test func theExampleOfAStoreHasThreeHundredLines() {
        let files = Repository.swiftFiles.filter { $0.path.hasPrefix("Examples/DictionaryStore/Sources/") }
        #expect(files.count > 2)
        #expect(files.reduce(0) { $0 + $1.lineCount } <= 300)
    }

    /// A class with more properties has several purposes. Move some of them into a struct with methods, like `LayerStack`.
    @Test func noClassHasMoreStoredPropertiesThanItsBudget() {
        var context = 0
        for file in Repository.modules.values.joined() {
            for found in file.classes {
                let budget = found.name == "ManagedObjectContext" ? 12 : 15
                if found.name == "ManagedObjectContext" { context += found.storedProperties }
                #expect(
                    found.storedProperties <= budget,
                    "\(file.path): \(found.name) has \(found.storedProperties) stored properties; the budget is \(budget)")
            }
        }
        #expect(context > 5, "the scan has found the properties of the context")
    }

    /// A call with labels tells what each value is. Each exception has its reason.
    private static let unlabelledExceptions = [
        "Sources/StoreModel/Schema/SchemaVersion.swift init": "a version is its three numbers in order, as in Schema.Version",
        "Sources/StrataSwiftData/Schema/Schema.swift init": "SwiftData's spelling of Schema.Version",
        "Sources/ObjectGraph/Coordination/Batches/BatchChange.swift batchUpdate":
            "the first change and the others are one list, which cannot be empty",
    ]

    @Test func noFunctionHasThreeUnlabelledParameters() {
        var exceptions: Set<String> = []
        var count = 0
        for file in Repository.swiftFiles
        where (file.path.hasPrefix("Sources/") || file.path.hasPrefix("Benchmarks/") && !file.isTest)
            // Deprecated, for programs that use the spelling without labels.
            && !file.path.hasSuffix("/EarlierNames.swift")
        {
            let signatures = file.signatures
            count += signatures.count
            for found in signatures where found.unlabelled >= 3 {
                let declaration = "\(file.path) \(found.name)"
                if Self.unlabelledExceptions[declaration] != nil {
                    exceptions.insert(declaration)
                } else {
                    Issue.record(
                        "\(file.path):\(found.line): \(found.name) has \(found.unlabelled) unlabelled parameters. Label all but the first"
                    )
                }
            }
        }
        #expect(count > 1_000, "the scan has found the functions")
        #expect(exceptions == Set(Self.unlabelledExceptions.keys), "an exception that is not needed any more must go")
    }

    /// Printed, not enforced. The goal is about 150 lines.
    @Test func theMedianFileLengthIsReported() {
        let lengths = Repository.modules.values.joined().map(\.lineCount).sorted()
        #expect(!lengths.isEmpty)
        print("Median length of a source file: \(lengths[lengths.count / 2]) lines, longest \(lengths.last ?? 0)")
    }
}
