import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface

/// Imports generated places and queries them: `import-geonames FILE [ROWS [ROWS-PER-SAVE [STOP-AFTER]]]`.
@main struct ImportGeonames {
    static func main() async {
        // A store that is opened as a closed standard stream would get the output. Now writing to these fails.
        for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
        let numbers = CommandLine.arguments.dropFirst(2).map { Int($0) ?? 0 }
        guard CommandLine.arguments.count >= 2, numbers.allSatisfy({ $0 > 0 }) else {
            complain("usage: import-geonames FILE [ROWS [ROWS-PER-SAVE [STOP-AFTER]]], each a number greater than 0")
            exit(2)
        }
        do {
            let container = try await PersistentContainer(
                model: .places(), store: .lmdb(URL(fileURLWithPath: CommandLine.arguments[1])))
            let isComplete = try await importPlaces(
                into: container, count: numbers.first ?? 170_391, rowsPerSave: numbers.dropFirst().first ?? 16_384,
                stopAfter: numbers.dropFirst(2).first ?? .max)
            if isComplete { try await container.read { try query($0) } }
            try await container.close()
            exit(isComplete ? 0 : 130)
        } catch {
            complain("\(error)")
            exit(1)
        }
    }

    // MARK: Importing

    /// Imports the places that the file does not have yet. Returns false if the import was stopped.
    static func importPlaces(
        into container: PersistentContainer, count: Int, rowsPerSave: Int, stopAfter limit: Int
    ) async throws -> Bool {
        struct Country: Codable, Sendable { var code: String }
        try await container.coordinator.insert(
            contentsOf: GeneratedPlaces.countries.map { Country(code: $0) }, into: "Country", rule: .keep(on: ["code"]))

        let known = try await container.read { try $0.count(EntityFetchRequest("Place")) }
        let places = GeneratedPlaces(count: count).dropFirst(known)
        if known > 0 { print("the file has \(known) places") }
        let stop = StopSwitch()
        let task = Task {
            var options = BatchOptions()
            options.rowsPerSave = rowsPerSave
            return try await container.coordinator.insert(contentsOf: places, into: "Place", options: options) { progress in
                print("saved \(progress)")
                if progress.savedRows >= limit { stop.press() }
            }
        }
        stop.onPress { task.cancel() }
        // Ctrl-C stops the import between two saves.
        signal(SIGINT, SIG_IGN)
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT)
        interrupt.setEventHandler { stop.press() }
        interrupt.activate()
        defer { interrupt.cancel() }

        let start = ContinuousClock.now
        do {
            let imported = try await task.value.insertedCount
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            print("imported \(imported) places in \(decimals(seconds)) s, \(Int(Double(imported) / seconds)) rows/s")
            return true
        } catch BatchError.importStopped(let savedRows, error: is CancellationError) {
            print("stopped after \(savedRows) places, which stay. Run the program again for the rest.")
            return false
        }
    }

    // MARK: Querying

    static func query(_ context: ManagedObjectContext) throws {
        let cities = EntityFetchRequest(
            "Place", matching: .all([.compare("population", .greater, to: 1_000_000), .equal("country.code", "FR")]),
            sortBy: [.init("population", .descending)], limit: 3)
        try show("the largest cities of France", cities, in: context)

        let names = EntityFetchRequest(
            "Place", matching: .string("name", .hasPrefix, pattern: "Neu", sensitivity: .sensitive),
            sortBy: [.init("name"), .init("number")], limit: 3)
        try show("the first places that begin with Neu", names, in: context)

        let around = EntityFetchRequest(
            "Place", matching: .all([.between("latitude", 47, and: 48), .between("longitude", 7, and: 8)]),
            sortBy: [.init("population", .descending)], limit: 3)
        try show("the largest places near Basel", around, in: context)

        let people = ResultColumn.sum("population").named("people")
        let byCountry = EntityValueRequest(
            "Place", fetching: [.property("country.code"), .count, people], groupBy: ["country.code"],
            sortBy: [.init("people", .descending)], limit: 3)
        let rows = try timed("countries by population") { try context.fetch(byCountry) }
        for row in rows { print("  \(row)") }
    }

    /// Prints the objects of a request, the time to fetch them, and the plan, which names the indexes.
    private static func show(_ title: String, _ request: EntityFetchRequest, in context: ManagedObjectContext) throws {
        let places = try timed(title) { try context.fetch(request) }
        for place in places {
            print("  \(place["name"]), \(place.relatedObject("country")?["code"] ?? "") \(place["population"])")
        }
        print("  plan: \(try context.explain(request))")
    }

    private static func timed<R>(_ title: String, _ work: () throws -> R) rethrows -> R {
        let start = ContinuousClock.now
        let result = try work()
        print("\(title), in \(decimals((ContinuousClock.now - start) / .milliseconds(1))) ms:")
        return result
    }

    private static func decimals(_ number: Double) -> String { String(format: "%.2f", number) }

    /// An error that cannot be shown has no other place to go. The status tells of it.
    private static func complain(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data("import-geonames: \(line)\n".utf8))
    }
}
