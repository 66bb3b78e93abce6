import Foundation
import StoreModel
import Testing

/// The text of a change set, which the histories of SQLite files contain.
@Suite struct ChangeSetTextTests {
    /// Written by a development version of November 2026. A property, id or metadata with another name would make histories
    /// unreadable.
    private static let text = """
        {"entities":[{"entity":0,"pages":[{"columns":{"high":0,"low":5},"deleted":0,"groups":[],"inserted":3,"number":1,"updated":4}]}],\
        "generation":7,"links":[{"destinations":[130],"link":1,"sources":[64,65]}],"origin":{"author":"ann","contextName":"worker",\
        "processID":12,"time":1795711831163589},"tombstones":[]}
        """

    /// Catches: a renamed property, or an id that is no longer a plain number.
    @Test func `a change set is read from the text that files contain, and written as it`() throws {
        let changes = try JSONDecoder().decode(ChangeSet.self, from: Data(Self.text.utf8))
        #expect(changes.generation == 7 && changes.author == "ann" && changes.metadata.contextName == "worker")
        #expect(changes.entities[0].pages[0].number == 1 && changes.entities[0].pages[0].inserted == 3)
        #expect(changes.links == [ChangeSet.LinkChange(link: 1, sources: [64, 65], destinations: [130])])
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(changes), as: UTF8.self) == Self.text)
    }
}
