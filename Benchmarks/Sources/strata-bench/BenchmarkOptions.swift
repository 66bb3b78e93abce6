import ArgumentParser
import Datasets
import Figures
import Foundation
import ObjectGraph
import StoreInterface
import Workloads

/// The options that every command has.
struct BenchmarkOptions: ParsableArguments, Sendable {
    @Option(help: ArgumentHelp("Which stacks to run: names with commas between them, or all.", valueName: "list"))
    var stack = "all"

    @Option(help: ArgumentHelp("Which stores: lmdb, sqlite, memory, or all.", valueName: "list"))
    var store = "lmdb,sqlite"

    @Option(help: ArgumentHelp("How contexts read on SQLite: snapshot, ancestors, or all.", valueName: "list"))
    var routing = "all"

    @Option(help: ArgumentHelp("What a power cut may lose: durable (nothing) or deferred (the newest saves).", valueName: "kind"))
    var durability = "durable"

    @Option(help: ArgumentHelp("How many objects, about.", valueName: "n"))
    var objects: Int?

    @Option(help: ArgumentHelp("How many objects between two saves.", valueName: "n"))
    var saveEvery: Int?

    @Option(
        help: ArgumentHelp("A SQLite file, or a folder of CSV files, to import instead of generated data.", valueName: "path"))
    var input: String?

    @Option(help: ArgumentHelp("The seed of generated data.", valueName: "n"))
    var seed: UInt64 = 1

    @Option(name: .customLong("repeat"), help: ArgumentHelp("How often each configuration runs.", valueName: "n"))
    var repeats = 3

    @Option(help: ArgumentHelp("Writes all figures to a file, for programs.", valueName: "file"))
    var json: String?

    @Option(help: ArgumentHelp("Writes a page with the table and a timeline per run.", valueName: "file"))
    var html: String?

    @Flag(help: "No progress bar.")
    var quiet = false

    @Flag(help: "Prints tables as Markdown.")
    var markdown = false

    func validate() throws {
        for (name, value) in [("--objects", objects), ("--save-every", saveEvery), ("--repeat", repeats)] {
            if let value, value < 1 { throw ValidationError("\(name) \(value): must be at least 1") }
        }
        _ = try stacks()
        _ = try stores()
        _ = try routings()
        _ = try durabilityKind()
    }

    func stacks() throws -> [ContextStack] { try Self.list("--stack", stack) }
    func stores() throws -> [StoreKind] { try Self.list("--store", store) }
    func routings() throws -> [Routing] { try Self.list("--routing", routing) }

    func durabilityKind() throws -> DurabilityKind {
        guard let kind = DurabilityKind(rawValue: durability) else {
            throw Self.unknown("--durability", durability, DurabilityKind.self)
        }
        return kind
    }

    /// The combinations asked for. A list that leaves none is an error.
    func settings() throws -> [Setting] {
        let settings = Setting.all(stacks: try stacks(), stores: try stores(), routings: try routings())
        guard !settings.isEmpty else {
            throw WrongInput(description: "--routing \(routing): exists on the store sqlite only; add it to --store")
        }
        return settings
    }

    var progressStyle: ProgressBar.Style { quiet ? .silent : .bar }

    private static func list<T: CaseIterable & RawRepresentable & Equatable>(_ option: String, _ text: String) throws -> [T]
    where T.RawValue == String {
        if text == "all" { return Array(T.allCases) }
        var result: [T] = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let value = T(rawValue: String(name)) else { throw unknown(option, String(name), T.self) }
            if !result.contains(value) { result.append(value) }
        }
        return result
    }

    private static func unknown<T: CaseIterable & RawRepresentable>(_ option: String, _ name: String, _ type: T.Type)
        -> ValidationError
    where T.RawValue == String {
        ValidationError("\(option) \(name): no such name; known are \(T.allCases.map(\.rawValue).joined(separator: ", "))")
    }
}
