import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// `diff --json`: values have the form that `query --json` and `export` give them. And the progress of long verbs.
@Suite struct DifferenceTests {
    private static let model: Model = {
        do {
            return try Model([
                EntityDescription(
                    name: "Item",
                    properties: [
                        .attribute(.init(name: "flag", type: .bool)), .attribute(.init(name: "count", type: .int64)),
                        .attribute(.init(name: "size", type: .double, isOptional: true, preservesValueOnDeletion: true)),
                        .attribute(.init(name: "day", type: .date)), .attribute(.init(name: "bytes", type: .data)),
                        .attribute(.init(name: "name", type: .string, isOptional: true)),
                        .relationship(.init(name: "owner", destination: "Item", cardinality: .toOne)),
                        .relationship(.init(name: "parts", destination: "Item", cardinality: .toMany)),
                    ])
            ])
        } catch {
            preconditionFailure("the test model is wrong: \(error)")
        }
    }()

    /// A store with the items 1 and 2, and a copy of it from before the last change.
    private static func changed(_ kind: StoreKind) async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("old", kind, model) { context in
            for number in 1...3 {
                let item = context.insert("Item")
                (item["flag"], item["count"], item["size"]) = (true, .int(Int64(number)), 0.5)
                (item["day"], item["bytes"]) = (0.0, .data(Data([1, 2])))
            }
            let names = try context.collection("names", of: [Int].self, key: (String, Int).self)
            names[("a", 1)] = [1]
            try context.collection("sizes", of: Int.self)["a"] = 1
        }
        #expect(await ToolRun("backup", folder.path("old"), folder.path("new")).status == 0)
        try await folder.fill("new", kind, model) { context in
            let items = try context.fetch(EntityFetchRequest("Item", sortBy: [.init("count")]))
            let item = items[0]
            (item["flag"], item["count"], item["size"]) = (false, 7, .null)
            (item["day"], item["bytes"], item["name"]) = (86_400.0, .data(Data([3])), "x")
            item.setRelatedObject("owner", to: items[1])
            item.setRelatedObjects("parts", to: [items[1]])
            context.delete(items[2])
            try context.collection("names", of: [Int].self, key: (String, Int).self)[("a", 1)] = [1, 2]
            try context.collection("sizes", of: Int.self)["a"] = 2
            try context.collection("more", of: Bool.self, key: Int.self)[1] = true
        }
        return folder
    }

    /// Returns the values before and after by the names of the properties, as JSON.
    private static func values(_ difference: [String: Any]?) -> [String: [NSObject?]] {
        // A relationship of two saves is a name only.
        let properties = (difference?["properties"] as? [Any] ?? []).compactMap { $0 as? [String: Any] }
        return Dictionary(
            properties.map { ($0["name"] as? String ?? "", [$0["before"] as? NSObject, $0["after"] as? NSObject]) },
            uniquingKeysWith: { first, _ in first })
    }

    @Test(arguments: fileKinds) func `values of two stores are JSON values`(_ kind: StoreKind) async throws {
        let folder = try await Self.changed(kind)
        let (old, new) = (folder.path("old"), folder.path("new"))
        let list = try await ToolRun("diff", old, new, "--json").list()
        let keys = try await ToolRun("query", old, "Item", "--sort", "count", "--json").list().compactMap { $0["$key"] as? Int }
        let null = NSNull()
        let values = Self.values(list.first { $0["kind"] as? String == "update" && $0["entity"] != nil })
        #expect(
            values == [
                "flag": [true as NSNumber, false as NSNumber], "count": [1 as NSNumber, 7 as NSNumber],
                "size": [0.5 as NSNumber, null], "day": ["2001-01-01T00:00:00Z" as NSString, "2001-01-02T00:00:00Z" as NSString],
                "bytes": ["AQI=" as NSString, "Aw==" as NSString], "name": [null, "x" as NSString],
                "owner": [null, keys[1] as NSNumber], "parts": [[] as NSArray, [keys[1]] as NSArray],
            ], "\(values)")
        // Entries have the form of an export.
        let entries = list.filter { $0["collection"] != nil }
        #expect(entries.map { $0["collection"] as? String } == ["more", "more", "names", "sizes"], "\(entries)")
        #expect(
            Self.values(entries[0]) == ["types": [null, ["keys": "Int", "values": "Bool"] as NSDictionary]], "\(entries[0])")
        #expect(entries[2]["key"] as? [String] == ["a", "1"])
        #expect(Self.values(entries[2]) == ["value": [[1] as NSArray, [1, 2] as NSArray]])
        #expect(Self.values(entries[3]).keys.first == "valueData", "\(entries[3])")
        let text = await ToolRun("diff", old, new)
        #expect(text.lines.contains { $0.contains("bytes: 2 bytes → 1 bytes") && $0.contains("parts: 0 objects → 1 objects") })
        #expect(text.lines.contains("~ names[a, 1]  value: [1] → [1,2]"), "\(text)")
    }

    @Test(arguments: fileKinds) func `values of two saves are JSON values, and unknown ones are named`(_ kind: StoreKind)
        async throws
    {
        let folder = try await Self.changed(kind)
        let list = try await ToolRun("diff", folder.path("new"), "--from", "1", "--json").list()
        let values = try #require(list.map(Self.values).first { $0["count"] != nil }, "\(list)").compactMapValues { $0[1] }
        #expect(values["count"] == 7 as NSNumber && values["flag"] == false as NSNumber, "\(values)")
        #expect(values["bytes"] == "Aw==" as NSString)
        let deleted = list.first { $0["kind"] as? String == "delete" && $0["entity"] as? String == "Item" }
        #expect(Self.values(deleted) == ["size": [0.5 as NSNumber, NSNull()]], "\(list)")
        #expect(list.contains { Self.values($0)["value"]?[1] == [1, 2] as NSArray }, "\(list)")
    }

    @Test(arguments: fileKinds) func `diff and query show their progress on a terminal only`(_ kind: StoreKind) async throws {
        let folder = try await Self.changed(kind)
        let (old, new) = (folder.path("old"), folder.path("new"))
        for (arguments, title) in [
            (["diff", old, new], "100 % objects compared"), (["diff", new, "--from", "1"], "100 % saves compared"),
            (["query", new, "Item"], "reading Item"), (["query", new, "Item", "--count"], "reading Item"),
        ] {
            let run = await ToolRun(arguments, onTerminal: true)
            #expect(run.progress.contains(title), "\(run)")
            #expect(run.progress.hasSuffix("\r\u{1B}[K"), "the line is cleared at the end")
            let plain = await ToolRun(arguments)
            #expect(plain.output == run.output && plain.errors == run.errors && plain.progress.isEmpty)
        }
    }

    /// Catches: the value of a later save, given as the one of the second state.
    @Test(arguments: fileKinds)
    func `the value of an object that was deleted later and came back is unknown`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Self.model) { context in
            let item = context.insert("Item")
            (item["flag"], item["count"], item["day"], item["bytes"]) = (true, 1, 0.0, .data(Data()))
        }
        let container = try await folder.container("shop", kind, Self.model)
        let context = container.coordinator.newBackgroundContext()
        let id = try await context.perform { context throws in
            context.undoHistory = UndoHistory(levels: 5)
            let item = try #require(try context.fetch(EntityFetchRequest("Item")).first)
            item["count"] = 2
            return item.objectID
        }
        try await context.save()
        try await context.perform { context throws in context.delete(try context.existingObject(with: id)) }
        try await context.save()
        try await context.perform { context throws in
            try context.undoHistory?.undo()
            try context.existingObject(with: id)["count"] = 5
        }
        try await context.save()
        try await container.close()
        let list = try await ToolRun("diff", folder.path("shop"), "--from", "1", "--to", "2", "--json").list()
        #expect(Self.values(list.first)["count"]?[1] == NSNull(), "\(list)")
    }
}
