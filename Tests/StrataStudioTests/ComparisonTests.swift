import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import StrataStudio

/// The values that the feed remembers, if it finds several saves at once.
@Suite struct ComparisonTests {
    private static func feed(_ container: PersistentContainer) -> LiveFeed {
        let language = StudioLanguage(
            condition: { _, _, _ in .always }, sort: { _ in [] }, text: { value, _ in Self.text(value) }, value: { _, _ in nil },
            sentence: { "\($0)" })
        return LiveFeed(StudioStore(container: container, file: "store", language: language, options: Studio.Options()))
    }

    private static func text(_ value: Value) -> String? {
        guard case .string(let text) = value else { return nil }
        return text
    }

    /// Catches: the value of a large save, shown as that of an earlier one, because the object is not among the first of the large save.
    @Test(arguments: fileKinds)
    func `a value is shown at the save that set it, however many objects that save changed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.write { context in
            for number in 0..<250 { context.makeTrack("old", plays: number) }
        }
        let feed = Self.feed(container)
        await feed.catchUp()
        // A save lists its objects by their keys.
        let last = try await container.write { context in
            let tracks = try context.objects("Track").sorted { $0.objectID.key < $1.objectID.key }
            tracks[249]["title"] = "middle"
            return tracks[249].objectID
        }
        let early = container.coordinator.currentHistoryToken.generation
        try await container.write { context in
            for track in try context.objects("Track") { track["title"] = "new" }
        }
        let late = container.coordinator.currentHistoryToken.generation
        await feed.catchUp()
        #expect(await feed.differences(ofSave: early).isEmpty)
        let differences = await feed.differences(ofSave: late)
        let difference = try #require(differences[last])
        #expect(difference.isOfSeveralSaves)
        #expect(difference.properties.map(\.name) == ["title"])
        #expect(difference.properties.map(\.before.text) == ["old"])
        #expect(difference.properties.map(\.after.text) == ["new"])
        // The other objects have changed in this save only.
        #expect(differences.count > 1 && differences.values.count { $0.isOfSeveralSaves } == 1)
        await feed.close()
        try await container.close()
    }

    /// Catches: the newest values, shown as those of the last save that is read, although later saves have set them.
    @Test(arguments: fileKinds)
    func `of more saves than are read at once, none is shown with the values of a later one`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.write { $0.makeTrack("first")["plays"] = 1 }
        let start = container.coordinator.currentHistoryToken.generation.rawValue
        let feed = Self.feed(container)
        await feed.catchUp()
        for number in 1...520 {
            try await container.write(.deferred) { context in
                for track in try context.objects("Track") { track["title"] = .string("\(number)") }
            }
        }
        try await container.flush()
        let newest = container.coordinator.currentHistoryToken.generation.rawValue
        #expect(newest == start + 520)
        await feed.catchUp()
        for save in start..<newest {
            let differences = await feed.differences(ofSave: Generation(rawValue: save))
            let texts = differences.values.flatMap(\.properties).map(\.after.text)
            #expect(!texts.contains("520"), "save \(save)")
        }
        // The feed goes on with the following save.
        try await container.write { context in
            for track in try context.objects("Track") { track["title"] = "last" }
        }
        await feed.catchUp()
        let differences = await feed.differences(ofSave: Generation(rawValue: newest + 1))
        #expect(differences.values.flatMap(\.properties).map(\.before.text) == ["520"])
        await feed.close()
        try await container.close()
    }
}
