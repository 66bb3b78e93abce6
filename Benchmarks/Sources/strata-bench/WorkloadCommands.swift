import ArgumentParser
import CoreDataRouting
import Datasets
import Figures
import Foundation
import Workloads

struct ShootoutCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "shootout", abstract: "Imports a library in the background while main shows live results.")

    static let read = Set(OptionUse.allCases)

    @OptionGroup var options: BenchmarkOptions

    @Flag(help: "Saves once after each entity, instead of every 500 objects.")
    var saveEachEntity = false

    @Option(
        help: ArgumentHelp(
            "The processor time of the importer besides its work on objects: none, or published (40/27 of the siblings' total).",
            valueName: "kind"))
    var parseCost = ParseCost.none

    @Option(
        help: ArgumentHelp(
            "The microseconds that each level spends on an object that it passes on, with the routing ancestors.",
            valueName: "microseconds"))
    var coreDataCost = 0.0

    func check() throws {
        try options.refuseGeneratorWithInput()
        if saveEachEntity, options.saveEvery != nil {
            throw ValidationError("--save-every: says when to save, as --save-each-entity does; leave out one of them")
        }
        guard (0...1_000_000).contains(coreDataCost) else {
            throw ValidationError("--core-data-cost: \(coreDataCost) is no time per object; give microseconds from 0 to 1000000")
        }
        let settings = try options.settings()
        if coreDataCost > 0, !settings.contains(where: { $0.routing == .ancestors }) {
            throw ValidationError("--core-data-cost: belongs to the routing ancestors; add --routing ancestors")
        }
    }

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let dataset = try options.dataset()
        for note in dataset.notes { try? FileHandle.standardError.write(contentsOf: Data("\(note)\n".utf8)) }
        var workload = try Shootout(
            dataset, savePoints: saveEachEntity ? .perEntity : .every(options.saveEvery ?? 500),
            durability: options.durabilityKind())
        let summary =
            "\(dataset.name): \(dataset.tables.count) entities, \(dataset.objectCount) objects, \(dataset.linkCount) links"
            + (dataset.lostReferences == 0 ? "" : "; \(dataset.lostReferences) references to missing rows became null")
        workload.coreDataCost = coreDataCost
        if parseCost == .published {
            workload.parseTimes = try await ParseTimes.published(
                workload, options.settings(), repeats: options.repeatsOrUsual,
                progress: ProgressBar(steps: 0, style: .silent))
        }
        let rows = try await rows(workload)
        let cost =
            coreDataCost > 0
            ? [
                "With the routing ancestors, each level computes \(Shown.number(coreDataCost)) µs for an object that it passes on."
            ] : []
        let notes = cost + workload.parseTimes.notes + PublishedShape.notes(rows)
        return (rows, [summary + ". Objects/s counts objects and links."] + notes + (try commonNotes()))
    }
}

extension ParseCost: ExpressibleByArgument {}

struct StallCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "stall", abstract: "Imports everything in one save while a label ticks on main.")

    static let read = Set(OptionUse.allCases)

    @OptionGroup var options: BenchmarkOptions

    func check() throws {
        try options.refuseGeneratorWithInput()
        _ = try options.settings()
    }

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let workload = try Stall(data(), saveEvery: options.saveEvery, durability: options.durabilityKind())
        return (try await rows(workload), try commonNotes())
    }

    func data() throws -> Dataset {
        try options.readInput() ?? Stall.strings(options.objects ?? 25_000, seed: options.seedOrUsual)
    }
}

struct ChatCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat", abstract: "Fills 50 groups with 100 messages each, all at once, with 50 live results on main.")

    static let read = Set(OptionUse.allCases)

    @OptionGroup var options: BenchmarkOptions

    func check() throws {
        try options.refuseGeneratorWithInput()
        _ = try options.settings()
    }

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let workload = try Chat(data(), saveEvery: options.saveEvery, durability: options.durabilityKind())
        return (try await rows(workload), try commonNotes())
    }

    func data() throws -> Dataset {
        try options.readInput().map { try ChatData.make(from: $0) }
            ?? ChatData.make(objects: options.objects ?? ChatData.groups * ChatData.messages, seed: options.seedOrUsual)
    }
}

struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Names commands, stacks, stores and routings.")

    func run() {
        let commands = StrataBench.configuration.subcommands.map { $0._commandName }
        print("commands:  \(commands.joined(separator: " "))")
        print("stacks:    \(Names.stacks.joined(separator: " "))")
        print("stores:    \(Names.stores.joined(separator: " "))")
        print("routings:  \(Names.routings.joined(separator: " "))")
    }
}
