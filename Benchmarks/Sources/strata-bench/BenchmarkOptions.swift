import ArgumentParser
import CoreDataRouting
import Datasets
import Figures
import Foundation
import ObjectGraph
import StoreInterface
import Workloads

/// The options that commands share. An option that was not given is nil, so that a command can refuse options that it does not
/// read.
struct BenchmarkOptions: ParsableArguments, Sendable {
    @Option(help: ArgumentHelp("Which stacks to run: names with commas between them, or all (default: all).", valueName: "list"))
    var stack: String?

    @Option(help: ArgumentHelp("Which stores: lmdb, sqlite, memory, or all (default: lmdb,sqlite).", valueName: "list"))
    var store: String?

    @Option(help: ArgumentHelp("How contexts read on SQLite: snapshot, ancestors, or all (default: all).", valueName: "list"))
    var routing: String?

    @Option(
        help: ArgumentHelp(
            "What a power cut may lose: durable (nothing) or deferred (the newest saves) (default: durable).", valueName: "kind"))
    var durability: String?

    @Option(help: ArgumentHelp("How many objects, about.", valueName: "n"))
    var objects: Int?

    @Option(help: ArgumentHelp("How many objects between two saves.", valueName: "n"))
    var saveEvery: Int?

    @Option(
        help: ArgumentHelp("A SQLite file, or a folder of CSV files, to import instead of generated data.", valueName: "path"))
    var input: String?

    @Option(
        help: ArgumentHelp(
            "The words that mean null in the CSV files of --input, with commas between them (default: NA).", valueName: "list"))
    var nullWords: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "The CSV file whose keys a column of --input has, if that is not inferred. May be repeated.",
            valueName: "file.column=file"))
    var references: [String] = []

    @Option(help: ArgumentHelp("The seed of generated data (default: 1).", valueName: "n"))
    var seed: UInt64?

    @Option(name: .customLong("repeat"), help: ArgumentHelp("How often each configuration runs (default: 3).", valueName: "n"))
    var repeats: Int?

    @Option(help: ArgumentHelp("Writes all figures to a file, for programs.", valueName: "file"))
    var json: String?

    @Option(help: ArgumentHelp("Writes a page with charts, time lines and tables.", valueName: "file"))
    var html: String?

    @Flag(help: "No progress bar.")
    var quiet = false

    @Flag(help: "Prints tables as Markdown.")
    var markdown = false

    /// Limits far above what a machine can do, and low enough that no sum of them overflows. A row refers to others by 32 bits.
    private static let limits = (objects: 100_000_000, saveEvery: 100_000_000, repeats: 10_000)

    func validate() throws {
        try Self.check("--objects", value: objects, limit: Self.limits.objects)
        try Self.check("--save-every", value: saveEvery, limit: Self.limits.saveEvery)
        try Self.check("--repeat", value: repeats, limit: Self.limits.repeats)
        _ = try stacks()
        _ = try stores()
        _ = try routings()
        _ = try durabilityKind()
        if nullWords != nil, input == nil {
            throw ValidationError("--null-words: is for CSV files only; add --input with their folder")
        }
        if !references.isEmpty, input == nil {
            throw ValidationError("--references: is for CSV files only; add --input with their folder")
        }
        try Self.checkWritable("--json", json)
        try Self.checkWritable("--html", html)
        try checkReplacesNoData()
    }

    /// Throws if a file of figures is the input, a file of the input's folder, or the other file of figures.
    private func checkReplacesNoData() throws {
        func resolved(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().path }
        if let json, let html, resolved(json) == resolved(html) {
            throw ValidationError("--html \(html): is the file of --json; name another file")
        }
        guard let data = input.map(resolved) else { return }
        for case (let option, let path?) in [("--json", json), ("--html", html)] {
            let file = resolved(path)
            let isPart =
                URL(filePath: file).deletingLastPathComponent().path == data
                && [".csv", ".tsv"].contains(where: file.lowercased().hasSuffix)
            if file == data || isPart { throw ValidationError("\(option) \(path): is read by --input; name another file") }
        }
    }

    private static func check(_ option: String, value: Int?, limit: Int) throws {
        guard let value else { return }
        if value < 1 { throw ValidationError("\(option) \(value): must be at least 1") }
        if value > limit { throw ValidationError("\(option) \(value): must be at most \(limit)") }
    }

    /// Checks before the run that the file can be written. A run may be long, and its figures would be lost.
    private static func checkWritable(_ option: String, _ path: String?) throws {
        guard let path else { return }
        var isFolder = ObjCBool(false)
        let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
        let place = exists ? path : URL(filePath: path).deletingLastPathComponent().path
        if path.isEmpty || isFolder.boolValue || !FileManager.default.isWritableFile(atPath: place) {
            throw ValidationError("\(option) \(path): cannot be written there")
        }
    }

    // MARK: What was given, or what is usual

    func stacks() throws -> [ContextStack] { try Self.list("--stack", stack ?? "all") }
    func stores() throws -> [StoreKind] { try Self.list("--store", store ?? "lmdb,sqlite") }
    func routings() throws -> [Routing] { try Self.list("--routing", routing ?? "all") }

    func durabilityKind() throws -> DurabilityKind {
        let name = durability ?? DurabilityKind.durable.rawValue
        guard let kind = DurabilityKind(rawValue: name) else {
            throw Self.unknown("--durability", name: name, type: DurabilityKind.self)
        }
        return kind
    }

    var seedOrUsual: UInt64 { seed ?? 1 }
    var repeatsOrUsual: Int { repeats ?? 3 }
    var progressStyle: ProgressBar.Style { quiet ? .silent : .bar }

    /// Returns the requested combinations. Throws if there is none.
    func settings() throws -> [BenchmarkConfiguration] {
        let settings = BenchmarkConfiguration.all(stacks: try stacks(), stores: try stores(), routings: try routings())
        guard !settings.isEmpty else {
            throw ValidationError("--routing \(routing ?? ""): exists on the store sqlite only; add it to --store")
        }
        return settings
    }

    /// Returns the engines of the requested stores, and the floors.
    func engines() throws -> [Engine] {
        let stores = try stores()
        return Engine.allCases.filter { $0.store.map(stores.contains) ?? true }
    }

    /// Returns the data to import: what `--input` names, or a generated music library.
    func dataset() throws -> Dataset {
        try readInput() ?? MusicLibrary.make(rows: objects ?? MusicLibrary.usualRowCount, seed: seedOrUsual)
    }

    /// Returns the data that `--input` names, or nil without that option.
    func readInput() throws -> Dataset? {
        try input.map { path in
            var options = DatasetOptions(nullWords: nullWords.map { Set($0.split(separator: ",").map(String.init)) })
            for choice in references { try options.chooseReference(choice) }
            let found = try Dataset.read(path, options: options).withoutSubentities
            guard found.objectCount > 0 else {
                throw DatasetError("\(path): there are no rows, so there is nothing to measure. Choose another input")
            }
            return found
        }
    }

    private static func list<T: CaseIterable & RawRepresentable & Equatable>(_ option: String, _ text: String) throws -> [T]
    where T.RawValue == String {
        if text == "all" { return Array(T.allCases) }
        var result: [T] = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let value = T(rawValue: String(name)) else { throw unknown(option, name: String(name), type: T.self) }
            if !result.contains(value) { result.append(value) }
        }
        return result
    }

    private static func unknown<T: CaseIterable & RawRepresentable>(_ option: String, name: String, type: T.Type)
        -> ValidationError
    where T.RawValue == String {
        unknown(option, name, among: T.allCases.map(\.rawValue))
    }

    static func unknown(_ option: String, _ name: String, among known: [String]) -> ValidationError {
        ValidationError("\(option) \(name): no such name\(Suggestion.hint(for: name, among: known))")
    }
}
