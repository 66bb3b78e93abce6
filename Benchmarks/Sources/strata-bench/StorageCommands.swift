import ArgumentParser
import Figures
import Foundation
import Workloads

struct StorageCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage", abstract: "Import, insert, point read, scan and update: through objects, and in C calls.")

    static let read = Set(OptionUse.allCases).subtracting([.stack, .routing])

    @OptionGroup var options: BenchmarkOptions

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        var imported = options
        imported.objects = nil
        let engines = try options.engines()
        let progress = ProgressBar(steps: engines.count * options.repeatsOrUsual, style: options.progressStyle)
        defer { progress.finish() }
        let storage = Storage(
            imported: try imported.dataset(), objects: options.objects ?? 100_000, seed: options.seedOrUsual,
            saveEvery: options.saveEvery ?? 500, durability: try options.durabilityKind())
        let rows = try await storage.rows(engines, repeats: options.repeatsOrUsual, progress: progress)
        return (
            rows,
            [
                "Engines alternate; medians of \(options.repeatsOrUsual). Warm: files are read right after they were written. Deferred, raw "
                    + "LMDB runs with MDB_NOSYNC, which can lose integrity in a power cut: a floor, not an alternative. Each "
                    + "engine's reads were checked, and after a fresh open all values."
            ]
        )
    }
}

struct ChildrenCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "children", abstract: "Makes, uses and saves a child while its parent holds unsaved changes.")

    static let read: Set<OptionUse> = [.store, .objects, .seed, .repeats]

    @OptionGroup var options: BenchmarkOptions

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let progress = ProgressBar(steps: 4 * options.repeatsOrUsual * (try options.stores().count), style: options.progressStyle)
        defer { progress.finish() }
        let children = Children(objects: options.objects ?? 1_000_000, seed: options.seedOrUsual)
        let rows = try await children.rows(try options.stores(), repeats: options.repeatsOrUsual, progress: progress)
        return (rows, ["Nanoseconds are those of one child. Medians of \(options.repeatsOrUsual)."])
    }
}

struct UndoCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo", abstract: "Changes objects in one undo group, undoes and redoes it, beside a context without undo.")

    static let read: Set<OptionUse> = [.store, .objects, .seed, .repeats]

    @OptionGroup var options: BenchmarkOptions

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let progress = ProgressBar(steps: options.repeatsOrUsual * (try options.stores().count), style: options.progressStyle)
        defer { progress.finish() }
        let undoing = Undoing(objects: options.objects ?? 100_000, seed: options.seedOrUsual)
        let rows = try await undoing.rows(try options.stores(), repeats: options.repeatsOrUsual, progress: progress)
        return (rows, ["Nanoseconds are those of one change. Medians of \(options.repeatsOrUsual). Nothing is saved."])
    }
}

struct ObservationCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "observation",
        abstract: "Scans, reads, changes and inserts objects that cannot be observed, that can, and that are observed.")

    static let read: Set<OptionUse> = [.store, .objects, .seed, .repeats]

    @OptionGroup var options: BenchmarkOptions

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let progress = ProgressBar(steps: options.repeatsOrUsual * (try options.stores().count), style: options.progressStyle)
        defer { progress.finish() }
        let observing = Observing(objects: options.objects ?? 100_000, seed: options.seedOrUsual)
        let rows = try await observing.rows(try options.stores(), repeats: options.repeatsOrUsual, progress: progress)
        return (rows, ["Nanoseconds are those of one object. Medians of \(options.repeatsOrUsual). Nothing is saved."])
    }
}

struct ScaleCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "scale", abstract: "What an object costs as the store grows tenfold from 10,000 objects: time, file, memory."
    )

    static let read: Set<OptionUse> = [.store, .durability, .objects, .saveEvery, .seed, .repeats]

    @OptionGroup var options: BenchmarkOptions

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let scale = Scale(
            objects: options.objects ?? 1_000_000, seed: options.seedOrUsual, saveEvery: options.saveEvery ?? 500,
            durability: try options.durabilityKind())
        let engines = try options.engines()
        let progress = ProgressBar(
            steps: scale.sizes.count * engines.count * options.repeatsOrUsual, style: options.progressStyle)
        defer { progress.finish() }
        return try await scale.rows(engines, repeats: options.repeatsOrUsual, progress: progress)
    }
}

struct ReadersCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "readers", abstract: "Latencies of 1, 2, 4, 8 readers, with and without a writer at full speed.")

    static let read: Set<OptionUse> = [.store, .durability, .objects, .saveEvery, .seed, .repeats]

    @OptionGroup var options: BenchmarkOptions

    @Option(help: ArgumentHelp("How long each configuration runs.", valueName: "seconds"))
    var seconds = 1.0

    func check() throws {
        guard seconds >= 0.01, seconds <= 3600 else {
            throw ValidationError("--seconds \(seconds): must be from 0.01 to 3600")
        }
    }

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let readers = Readers(
            objects: options.objects ?? 100_000, seed: options.seedOrUsual, saveEvery: options.saveEvery ?? 500,
            durability: try options.durabilityKind(), seconds: seconds)
        let engines = try options.engines()
        let progress = ProgressBar(
            steps: Readers.counts.count * 2 * engines.count * options.repeatsOrUsual, style: options.progressStyle)
        defer { progress.finish() }
        return try await readers.rows(engines, repeats: options.repeatsOrUsual, progress: progress)
    }
}

struct SavesCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "saves", abstract: "Latencies of synchronous saves on main, alone and beside an importer.")

    static let read: Set<OptionUse> = [.store, .objects, .saveEvery, .seed, .repeats]

    @OptionGroup var options: BenchmarkOptions

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let saves = Saves(count: options.objects ?? 1_000, seed: options.seedOrUsual, saveEvery: options.saveEvery ?? 500)
        let engines = try options.engines().filter(Saves.engines.contains)
        let progress = ProgressBar(
            steps: Saves.Importer.allCases.count * engines.count * options.repeatsOrUsual, style: options.progressStyle)
        defer { progress.finish() }
        return try await saves.rows(engines, repeats: options.repeatsOrUsual, progress: progress)
    }
}
