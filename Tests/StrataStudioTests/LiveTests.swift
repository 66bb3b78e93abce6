import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The history, and news of saves.
@Suite struct LiveTests {
    /// Reads events until one satisfies a condition. Blocks.
    private func events(
        _ connection: HTTPClient.Connection, until isLast: @escaping @Sendable (String) -> Bool
    ) async throws -> String {
        try await HTTPClient.blocking {
            var text = ""
            while !isLast(text) {
                let part = try connection.read()
                guard !part.isEmpty else { throw HTTPClient.Failure(description: "the events have ended: \(text)") }
                text += String(decoding: part, as: UTF8.self)
            }
            return text
        }
    }

    @Test(arguments: fileKinds)
    func `a page is told about each save of another context, with its entities`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let connection = try await run.client.open("GET /api/events", run.headers)
        // The first event has the newest save.
        let start = try await events(connection) { $0.contains(#""save":1"#) }
        #expect(start.contains("text/event-stream"))
        let container = try await run.container()
        try await container.write { $0.insert("Artist")["name"] = "Pulp" }
        let news = try await events(connection) { $0.contains(#""save":2"#) }
        #expect(news.contains(#"["Artist"]"#), "\(news)")
        let list = try await run.keys("Playlist")[0]
        let track = try await run.keys("Track", filter: "plays = 100")[0]
        let identity = container.coordinator.storeIdentity
        let (entities, keys) = (["Playlist", "Track"].map { Music.model.entity(named: $0)?.number ?? 0 }, [list, track])
        try await container.write { context in
            let ids = zip(entities, keys).map { ObjectID(store: identity, entity: $0, key: ObjectKey($1) ?? 0) }
            try context.existingObject(with: ids[0]).add(context.existingObject(with: ids[1]), to: "tracks")
        }
        // A pair concerns the entities at both ends.
        let pair = try await events(connection) { $0.contains(#""save":3"#) }
        #expect(pair.contains("Track") && pair.contains("Playlist") && !pair.contains("Artist"), "\(pair)")
        try await container.close()
        // The tool does not wait for connections of pages.
        #expect(try await run.stop() == 0)
        _ = try await HTTPClient.blocking { try connection.readToEnd() }
    }

    @Test(arguments: fileKinds)
    func `the history is read in parts, newest first, and has the values of saves since the start`(_ kind: StoreKind) async throws
    {
        let run = try await StudioRun(kind)
        let container = try await run.container()
        for number in 1...30 {
            try await container.write { context in
                context.transactionAuthor = number % 2 == 0 ? "even" : "odd"
                try context.fetch(EntityFetchRequest("Track", matching: .equal("plays", .int(5))))[0]["title"] = .string(
                    "title \(number)")
            }
            // The page has seen the save before the next one is made.
            _ = try await run.json("history", ["limit": "1"])
        }
        var saves: [[String: Any]] = []
        var next: Int?
        repeat {
            let page = try await run.json("history", ["limit": "7", "before": next.map(String.init) ?? ""])
            saves += try #require(page["saves"] as? [[String: Any]])
            next = page["next"] as? Int
        } while next != nil
        #expect(saves.map { $0["save"] as? Int } == (1...31).reversed())
        let differences = saves.dropLast().map { save -> [String?] in
            let change = (save["changes"] as? [[String: Any]])?.first?["difference"] as? [String: Any]
            let properties = change?["properties"] as? [[String: Any]]
            return [properties?.first?["before"] as? [String: Any], properties?.first?["after"] as? [String: Any]].map {
                $0?["text"] as? String
            }
        }
        let expected = (1...30).reversed().map { ["\($0 == 1 ? "Track 5" : "title \($0 - 1)")", "title \($0)"] as [String?] }
        #expect(differences == expected)
        let odd = try #require(try await run.json("history", ["author": "odd", "limit": "100"])["saves"] as? [[String: Any]])
        #expect(odd.count == 15)
        let artists = try #require(try await run.json("history", ["entity": "Artist"])["saves"] as? [[String: Any]])
        #expect(artists.map { $0["save"] as? Int } == [1])
        let one = try #require(try await run.json("history", ["save": "1"])["saves"] as? [[String: Any]])
        #expect(one[0]["count"] as? Int == 124 && (one[0]["changes"] as? [Any])?.count == 124)
        #expect(try await run.get("/api/history", ["save": "99"]).status == 404)
        try await container.close()
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `a history whose oldest saves are deleted is shown from the oldest kept one`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let container = try await run.container()
        // More saves than the page reads at once.
        for number in 1...520 {
            try await container.write(.deferred) { $0.insert("Playlist")["name"] = .string("\(number)") }
        }
        try await container.flush()
        let start = container.coordinator.currentHistoryToken.generation
        for number in 1...5 { try await container.write { $0.insert("Artist")["name"] = .string("\(number)") } }
        let newest = container.coordinator.currentHistoryToken
        let last = newest.generation.rawValue
        try await container.coordinator.deleteHistory(
            before: HistoryToken(store: newest.store, incarnation: newest.incarnation, generation: start.advanced(by: 3)))
        let page = try await run.json("history")
        #expect(
            (page["saves"] as? [[String: Any]])?.map { $0["save"] as? UInt64 } == [last, last - 1] && page["next"] == nil)
        let key = try await run.keys("Artist", filter: "name = '5'")[0]
        let object = try await run.json("object", ["entity": "Artist", "key": key])
        #expect((object["history"] as? [[String: Any]])?.map { $0["save"] as? UInt64 } == [last])
        try await container.close()
        try await run.stop()
    }
}
