import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Exports of Realm Studio, in the forms of its versions.
@Suite struct RealmTests {
    private func imported(
        _ json: String, _ kind: String = "lmdb", withClasses: Bool = true, _ body: (ToolFolder, ToolRun) async throws -> Void
    ) async throws {
        let folder = try ToolFolder()
        try Data(json.utf8).write(to: URL(fileURLWithPath: folder.path("realm.json")))
        let classes = withClasses ? ["--swift", folder.path("Models.swift")] : []
        let words = ["import", folder.path("realm.json"), folder.path("out"), "--kind", kind, "--json"]
        try await body(folder, await ToolRun(words + classes))
    }

    @Test func `values of several types and integers that no number can hold become texts with a note`() async throws {
        let json = #"{"Dog":[{"name":"Rex","size":1.5,"tag":1},{"name":5,"size":9007199254740993,"tag":2}]}"#
        try await imported(json) { (folder, run) async throws in
            let notes = try #require(try run.object()["notes"] as? [String])
            #expect(notes.contains { $0.hasPrefix("Dog.name: its values are of several types (1 numbers, 1 texts)") }, "\(notes)")
            #expect(notes.contains { $0.hasPrefix("Dog.size: its 2 numbers do not fit") }, "\(notes)")
            let dogs = try await query(folder, "Dog")
            #expect(dogs.map { $0["name"] as? String } == ["\"Rex\"", "5"])
            #expect(dogs.map { $0["size"] as? String } == ["1.5", "9007199254740993"] && dogs[1]["tag"] as? Int == 2)
        }
    }

    @Test func `a byte order mark is no part of the data`() async throws {
        try await imported("\u{FEFF}{\"Dog\": [{\"name\": \"Rex\"}]}") { (folder, run) async throws in
            #expect(run.status == 0, "\(run)")
            #expect(try await query(folder, "Dog").count == 1)
            #expect(await ToolRun("export", folder.path("out"), folder.path("dogs.jsonl")).status == 0)
            let lines = try folder.bytes("dogs.jsonl")
            try (Data([0xEF, 0xBB, 0xBF]) + lines).write(to: folder.url.appending(path: "marked.jsonl"))
            let again = await ToolRun("import", folder.path("marked.jsonl"), folder.path("again"))
            #expect(again.status == 0, "\(again)")
        }
    }

    private func query(_ folder: ToolFolder, _ words: String...) async throws -> [[String: Any]] {
        let run = await ToolRun(["query", folder.path("out")] + words + ["--json"])
        #expect(run.status == 0, "\(run.errors)")
        return try run.list()
    }

    /// Two persons with dogs. The owner of a dog, the friends of a person and an embedded address are objects in objects.
    private static let nested = """
        {
          "Person": [
            {"_id": 1, "name": "Ann", "score": 1.5, "isNew": true, "born": "1990-05-01T10:00:00.250Z", "tags": ["a", "b"], "empty": [],
             "address": {"street": "Main St", "number": 5, "spot": {"x": 1}}, "dogs": [{"name": "Rex", "age": 3}, {"name": "Bo", "age": 1}],
             "key": "0F8C44B3-9A0B-4C4D-8E56-3C1F2E6A7B90", "photo": "AQID"},
            {"_id": 2, "name": "Bob", "score": 2, "isNew": false, "born": null, "tags": [], "empty": [], "address": null,
             "dogs": [{"name": "Bo", "age": 1}, {"name": "Bo", "age": 1}], "key": "0F8C44B3-9A0B-4C4D-8E56-3C1F2E6A7B91", "photo": null}
          ],
          "Dog": [{"name": "Rex", "age": 3}, {"name": "Bo", "age": 1}],
          "Walk": [{"dog": {"name": "Rex", "age": 3}, "walker": {"_id": 2, "name": "Bob", "score": 2, "isNew": false, "born": null,
             "tags": [], "empty": [], "address": null, "dogs": [{"name": "Bo", "age": 1}, {"name": "Bo", "age": 1}],
             "key": "0F8C44B3-9A0B-4C4D-8E56-3C1F2E6A7B91", "photo": null}}],
          "Nothing": []
        }
        """

    @Test(arguments: ["lmdb", "sqlite"])
    func `copies of related objects become relationships, embedded objects entities, and types are inferred`(_ kind: String)
        async throws
    {
        try await imported(Self.nested, kind) { (folder, run) async throws in
            #expect(run.status == 0, "\(run.errors)")
            let entities = try #require(try run.object()["entities"] as? [String: Int])
            #expect(entities == ["Person": 2, "Dog": 2, "Walk": 1, "Nothing": 0, "Address": 1, "Spot": 1])
            let persons = try await query(folder, "Person", "--sort", "_id")
            #expect(persons.map { $0["name"] as? String } == ["Ann", "Bob"] && persons.map { $0["_id"] as? Int } == [1, 2])
            #expect(persons.map { $0["score"] as? Double } == [1.5, 2] && persons.map { $0["isNew"] as? Bool } == [true, false])
            #expect(persons[0]["born"] as? String == "1990-05-01T10:00:00.25Z" && persons[0]["tags"] as? String == #"["a","b"]"#)
            let dogs = try await query(folder, "Dog", "any persons (name = 'Ann')", "--sort", "name")
            #expect(dogs.map { $0["name"] as? String } == ["Bo", "Rex"])
            #expect(try await query(folder, "Walk", "dog.name = 'Rex' and walker.name = 'Bob'").count == 1)
            #expect(try await query(folder, "Person", "address.spot.x = 1").count == 1)
            let notes = try #require(try run.object()["notes"] as? [String])
            #expect(notes.contains { $0.contains("Person.address: its 1 embedded objects became Address") })
            #expect(notes.contains("Person.dogs: 3 links to Dog, in their order"))
            #expect(notes.contains { $0.contains("Person.dogs: 1 objects were in a list more than once") })
            #expect(notes.contains { $0.contains("Person.empty is left out") })
            let classes = try String(contentsOfFile: folder.path("Models.swift"), encoding: .utf8)
            #expect(classes.contains("var key: UUID") && classes.contains("@Relationship var walker: Person?"))
            #expect(await ToolRun("verify", folder.path("out")).status == 0)
        }
    }

    @Test func `primary keys stand for objects in exports of the first versions`() async throws {
        let json = """
            {"Artist": [{"id": 7, "name": "Blur"}, {"id": 9, "name": "Pulp"}],
             "Track": [{"id": "0123456789abcdef01234567", "artist": 9, "plays": 7, "next": null},
                       {"id": "0123456789abcdef01234568", "artist": null, "plays": 9, "next": "0123456789abcdef01234567"}],
             "List": [{"artists": [7, 9], "numbers": [7], "tracks": ["0123456789abcdef01234568"]}]}
            """
        try await imported(json) { (folder, run) async throws in
            #expect(run.status == 0, "\(run.errors)")
            #expect(try await query(folder, "Track", "artist.name = 'Pulp'").map { $0["plays"] as? Int } == [7])
            #expect(try await query(folder, "Track", "next.plays = 7").map { $0["plays"] as? Int } == [9])
            #expect(try await query(folder, "List", "artists.count = 2 and tracks.count = 1")[0]["numbers"] as? String == "[7]")
        }
    }

    @Test func `references by $ref are found in circles`() async throws {
        let json = """
            {"Person": [{"$refId": "Person#1", "name": "Ann", "friend": {"$refId": "Person#2", "name": "Bob", "friend": {"$ref": "Person#1"}}},
              {"$ref": "Person#2"}]}
            """
        try await imported(json) { (folder, run) async throws in
            #expect(run.status == 0, "\(run.errors)")
            #expect(try await query(folder, "Person", "friend.friend.name = 'Ann'").map { $0["name"] as? String } == ["Ann"])
            #expect(try await query(folder, "Person").count == 2)
        }
        try await imported(#"{"Person": [{"a": {"$ref": "Person#9"}}]}"#) { (_, run) async throws in
            #expect(run.isRefused(naming: "realm.json", "Person#9"))
        }
    }

    @Test func `the flat form of newer versions is read`() async throws {
        let json = """
            [{"Person":"1","Dog":"2"},["3","4"],["5"],{"name":"6","friend":"4","dogs":"7","age":41},{"name":"8","friend":"3","dogs":"9","age":null},
             {"name":"10"},"Ann",["11"],"Bob",[],"Rex",{"name":"10"}]
            """
        try await imported(json) { (folder, run) async throws in
            #expect(run.status == 0, "\(run.errors)")
            #expect(try await query(folder, "Person", "friend.name = 'Bob'").map { $0["age"] as? Int } == [41])
            #expect(try await query(folder, "Dog", "any persons (name = 'Ann')").map { $0["name"] as? String } == ["Rex"])
        }
    }

    @Test func `wrong exports are refused in one line, and few bytes make no large store`() async throws {
        let deep = #"{"A": [{"a": "# + String(repeating: "[", count: 100_000)
        let deepObjects = #"{"A": ["# + String(repeating: #"{"a":"#, count: 100_000)
        // A list that is named by 20,000 objects, with 20,000 elements.
        let objects = (0..<20_000).map { _ in #"{"l":"3"}"# }.joined(separator: ",")
        let list = (0..<20_000).map { "\"\($0 + 4)\"" }.joined(separator: ",")
        let many = "[{\"A\":\"1\"},[\(list)],0,[\(list)],\(objects)]"
        let different = "{\"A\": [" + (0..<5000).map { "{\"m\($0)\": 1}" }.joined(separator: ",") + "]}"
        let cases = [
            (deep, "nested more than"), (deepObjects, "nested more than"), (many, "names a list too often"),
            (different, "too many different members"), (#"{"A": [1]}"#, "not an object"),
            (#"{"A": [{"b": 1, "b": 2}]}"#, "two members b"),
            (#"[{"A":"7"}]"#, "no element 7"), (#"[{"A":"1"},[["2"]]]"#, "position is expected"),
            (#"{"A": [{"b": 1}"#, "byte 16"),
            ("{}", "no classes"), (#"[{"A":"1"},["2"],{"b":"3"},["4"],["5"]]"#, "list in a list"),
            (#"[{"A":"1"},["2","2"],{"b":1}]"#, "occurs twice"),
        ]
        for (json, text) in cases {
            try await imported(json) { (folder, run) async throws in
                #expect(run.isRefused(naming: "realm.json", text), "\(text): \(run.errors.prefix(300))")
                #expect(!FileManager.default.fileExists(atPath: folder.path("out")))
            }
        }
    }

    @Test func `random changes of an export are imported or refused`() async throws {
        var random = SeededGenerator()
        let sound = Array(Self.nested.utf8)
        let alphabet = Array("{}[]\",:0129abn$ \\".utf8)
        for _ in 0..<Rounds.of(60, long: 3000) {
            var damaged = sound
            for _ in 0...random.below(3) { damaged[random.below(damaged.count)] = alphabet[random.below(alphabet.count)] }
            try await imported(String(decoding: damaged, as: UTF8.self), withClasses: false) { (folder, run) async throws in
                #expect(run.status == 0 || run.isRefused(), "\(run.errors)")
                if run.status == 0 { #expect(await ToolRun("verify", folder.path("out")).status == 0) }
            }
        }
    }
}
