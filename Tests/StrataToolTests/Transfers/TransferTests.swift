import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Exports and imports: what is written can be read again, byte for byte.
@Suite struct TransferTests {
    /// An attribute of each type, required and optional, with relationships of each kind. A property has a name that needs quotes.
    static let everything: Model = {
        let attributes = ColumnType.allCases.filter { $0 != .reference }.flatMap { type -> [PropertyDescription] in
            [
                .attribute(.init(name: type.rawValue, type: type)),
                .attribute(.init(name: "\(type.rawValue) or, nil", type: type, isOptional: true)),
            ]
        }
        do {
            return try Model(
                [
                    EntityDescription(
                        name: "Thing",
                        properties: attributes + [
                            .relationship(.init(name: "parent", destination: "Thing", inverse: "children", cardinality: .toOne)),
                            .relationship(.init(name: "children", destination: "Thing", inverse: "parent", cardinality: .toMany)),
                            .relationship(.init(name: "later", destination: "Other", cardinality: .toOne)),
                            .relationship(.init(name: "friends", destination: "Thing", cardinality: .toMany)),
                            .relationship(.init(name: "others", destination: "Other", inverse: "things", cardinality: .toMany)),
                        ]),
                    EntityDescription(
                        name: "Other",
                        properties: [
                            .attribute(.init(name: "$", type: .string)),
                            .relationship(.init(name: "things", destination: "Thing", inverse: "others", cardinality: .toMany)),
                        ]),
                    EntityDescription(name: "Empty", properties: [.attribute(.init(name: "value", type: .int64))]),
                ], version: SchemaVersion(1, 2, 3))
        } catch {
            preconditionFailure("the test model is wrong: \(error)")
        }
    }()

    /// The same model without a name that JSON lines cannot have.
    static let named: Model = {
        var descriptions = EntityDescription.all(in: everything.storeSchema)
        descriptions[1].properties[0] = .attribute(.init(name: "name", type: .string))
        do { return try Model(descriptions) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    private static func value(_ type: ColumnType, _ random: inout SeededGenerator) -> Value {
        let texts = [
            "", "a", "\"", ",", "\r\n", " x ", "é", "e\u{301}", "\u{0}\u{1}", "NA", "👍🏽", "\u{2028}", "=1+1", "\u{FEFF}b", "\\",
            "\"\u{301}",
        ]
        switch type {
        case .bool: return .bool(random.chance(50))
        case .int8: return .int([-128, 127, 0].randomElement(using: &random) ?? 0)
        case .int16: return .int(Int64(Int16.random(in: .min ... .max, using: &random)))
        case .int32: return .int([Int64(Int32.min), Int64(Int32.max), 7].randomElement(using: &random) ?? 0)
        case .int64: return .int([.min, .max, 1 << 53 + 1].randomElement(using: &random) ?? 0)
        case .uint8: return .int(255)
        case .uint16: return .int(65_535)
        case .uint32: return .int(Int64(UInt32.max))
        case .uint64: return .uint([.max, 0, 1 << 63].randomElement(using: &random) ?? 0)
        case .float:
            let numbers: [Float] = [.pi, -0.1, .infinity, .greatestFiniteMagnitude]
            return .double(Double(numbers[random.below(numbers.count)]))
        case .double:
            let numbers: [Double] = [0.1 + 0.2, -.infinity, .nan, .leastNonzeroMagnitude, 1e300, -3, 1_152_921_504_606_846_976]
            return .double(numbers[random.below(numbers.count)])
        case .date:
            let moments: [Double] = [0, 86_400.25, -1e9 - 0.125, 737_057_651.669581, 1e-9, 1e15, -.infinity]
            let other = Double.random(in: -1e9...1e9, using: &random)
            return .double(random.chance(50) ? other : moments[random.below(moments.count)])
        case .string: return .string((texts.randomElement(using: &random) ?? "") + (texts.randomElement(using: &random) ?? ""))
        case .data: return .data(Data((0..<random.below(2000)).map { UInt8(truncatingIfNeeded: $0 &* 7) }))
        case .uuid: return .uuid(UUID())
        case .reference: return .null
        }
    }

    private static func fill(_ folder: ToolFolder, _ name: String, _ kind: StoreKind, _ model: Model, _ seed: SeededGenerator)
        async throws
    {
        let container = try await folder.container(name, kind, model)
        // Several saves, of which some delete, so that keys have gaps.
        for round in 0..<4 {
            let start = SeededGenerator(seed: seed.seed &+ UInt64(round))
            try await container.write { context in
                var random = start
                for _ in 0..<60 {
                    let thing = context.insert("Thing")
                    for attribute in model.entities[0].attributes where !attribute.isOptional || random.chance(70) {
                        thing[attribute.name] = value(attribute.type, &random)
                    }
                    let other = context.insert("Other")
                    other[model.entities[1].columns[0].name] = value(.string, &random)
                }
                var things = try context.fetch(EntityFetchRequest("Thing"))
                let others = try context.fetch(EntityFetchRequest("Other"))
                for thing in things where random.chance(20) && things.count > 10 {
                    things.removeAll { $0 === thing }
                    context.delete(thing)
                }
                for thing in things {
                    thing.setRelatedObject("parent", to: random.chance(50) ? things.randomElement(using: &random) : nil)
                    thing.setRelatedObject("later", to: random.chance(50) ? others.randomElement(using: &random) : nil)
                    thing.setRelatedObjects("friends", to: things.filter { _ in random.chance(3) })
                    thing.setRelatedObjects("others", to: others.filter { _ in random.chance(3) })
                }
            }
        }
        try await container.close()
    }

    @Test(arguments: fileKinds) func `an export is imported to a store whose export has the same bytes`(_ kind: StoreKind)
        async throws
    {
        let folder = try ToolFolder()
        let random = SeededGenerator()
        try await Self.fill(folder, "store", kind, Self.named, random)
        let first = folder.path("first.jsonl")
        #expect(await ToolRun("export", folder.path("store"), first).status == 0)
        for (form, name) in [("jsonl", "a.jsonl"), ("csv", "a"), ("sqlite", "a.sqlite")] {
            let export = await ToolRun("export", folder.path("store"), folder.path(name))
            #expect(export.status == 0, "\(export.errors)")
            for target in ["lmdb", "sqlite"] {
                let copy = "copy-\(form)-\(target)"
                let run = await ToolRun("import", folder.path(name), folder.path(copy), "--kind", target, "--json")
                #expect(run.status == 0, "\(run.errors)")
                #expect(await ToolRun("verify", folder.path(copy)).status == 0)
                #expect(await ToolRun("export", folder.path(copy), folder.path(copy + ".jsonl")).status == 0)
                #expect(try folder.bytes(copy + ".jsonl") == folder.bytes("first.jsonl"), "\(copy)")
                #expect(await ToolRun("export", folder.path(copy), folder.path(copy + "-csv"), "--format", "csv").status == 0)
                for file in ["Thing.csv", "Other.csv", "Empty.csv", "Thing.friends.csv", "Thing.others.csv", "model.json"] {
                    let csv = try folder.bytes("\(copy)-csv/\(file)")
                    if form == "csv" { #expect(try csv == folder.bytes("a/\(file)"), "\(copy) \(file)") }
                }
            }
        }
    }

    @Test(arguments: fileKinds) func `an imported store has the values, references and links of the original`(_ kind: StoreKind)
        async throws
    {
        let folder = try ToolFolder()
        try await Self.fill(folder, "store", kind, Self.everything, SeededGenerator())
        #expect(await ToolRun("export", folder.path("store"), folder.path("csv")).status == 0)
        #expect(await ToolRun("import", folder.path("csv"), folder.path("copy")).status == 0)
        func contents(_ name: String, _ kind: StoreKind) async throws -> [[String]] {
            let container = try await folder.container(name, kind, Self.everything)
            let found = try await container.read { context in
                let things = try context.fetch(EntityFetchRequest("Thing"))
                let others = try context.fetch(EntityFetchRequest("Other"))
                let places = Dictionary(uniqueKeysWithValues: (things + others).enumerated().map { ($1.objectID, $0) })
                return things.map { thing in
                    let values = Self.everything.entities[0].attributes.map { attribute -> String in
                        // Exact, where descriptions are rounded.
                        if case .double(let number) = thing[attribute.name] {
                            return number.isNaN ? "NaN" : "\(number.bitPattern)"
                        }
                        if case .data(let data) = thing[attribute.name] { return data.base64EncodedString() }
                        if case .string(let text) = thing[attribute.name] { return "\(Array(text.unicodeScalars))" }
                        return "\(thing[attribute.name])"
                    }
                    let one = ["parent", "later"].map { name in
                        thing.relatedObject(name).map { "\(places[$0.objectID] ?? -1)" } ?? "nil"
                    }
                    let many = ["children", "friends", "others"].map { name in
                        "\(thing.relatedObjects(name).map { places[$0.objectID] ?? -1 })"
                    }
                    return values + one + many
                }
            }
            try await container.close()
            return found
        }
        let original = try await contents("store", kind)
        #expect(original.count > 100)
        #expect(try await contents("copy", .lmdb) == original)
    }

    /// Catches: the digits that the number of a float has as a double.
    @Test(arguments: ["copy.jsonl", "copy"]) func `a float is exported with its own digits`(_ name: String) async throws {
        let folder = try ToolFolder()
        let properties = [PropertyDescription.attribute(.init(name: "number", type: .float))]
        try await folder.fill("store", .lmdb, try Model([EntityDescription(name: "Number", properties: properties)])) { context in
            context.insert("Number")["number"] = .double(Double(0.1 as Float))
        }
        #expect(await ToolRun("export", folder.path("store"), folder.path(name)).status == 0)
        let file = name == "copy" ? folder.url.appending(path: "copy/Number.csv") : folder.url.appending(path: name)
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains("0.1") && !text.contains("0.10"), "\(text)")
    }

    /// Catches: a date of minus zero that became zero.
    @Test func `numbers keep their bits as JSON lines and as CSV, except for those of NaN`() async throws {
        let folder = try ToolFolder()
        let types: [ColumnType] = [.float, .double, .date]
        let model = try Model([
            EntityDescription(
                name: "Number", properties: types.map { .attribute(.init(name: $0.rawValue, type: $0, isOptional: true)) })
        ])
        let numbers: [Double] = [
            -0.0, 0, .infinity, -.infinity, .nan, Double(nan: 5, signaling: false), Double(Float.leastNonzeroMagnitude), 0.5,
            -0.5,
        ]
        try await folder.fill("store", .lmdb, model) { context in
            for number in numbers {
                let object = context.insert("Number")
                for type in types { object[type.rawValue] = .double(number) }
            }
        }
        for name in ["copy.jsonl", "copy"] {
            #expect(await ToolRun("export", folder.path("store"), folder.path(name)).status == 0)
            let copy = name + ".lmdb"
            #expect(await ToolRun("import", folder.path(name), folder.path(copy)).status == 0)
            #expect(await ToolRun("diff", folder.path("store"), folder.path(copy)).lines == ["no differences"])
            let container = try await folder.container(copy, .lmdb, model)
            let found = try await container.read { context in
                try context.fetch(EntityFetchRequest("Number")).map { object in types.map { object[$0.rawValue] } }
            }
            try await container.close()
            #expect(found.count == numbers.count)
            for (number, values) in zip(numbers, found) {
                for value in values {
                    guard case .double(let copied) = value else {
                        Issue.record("\(number) became \(value)")
                        continue
                    }
                    #expect(number.isNaN ? copied.isNaN : copied.bitPattern == number.bitPattern, "\(number) \(copied)")
                }
            }
        }
    }

    @Test func `an SQLite file of another program becomes a store with relationships`() async throws {
        let folder = try ToolFolder()
        try makeDatabase(
            folder.path("shop.sqlite"),
            """
            CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name TEXT);
            CREATE TABLE Track (TrackId INTEGER PRIMARY KEY, Name TEXT NOT NULL, ArtistId INTEGER REFERENCES Artist, Price NUMERIC);
            CREATE TABLE List (ListId INTEGER PRIMARY KEY, Made DATETIME);
            CREATE TABLE ListTrack (ListId INTEGER REFERENCES List, TrackId INTEGER REFERENCES Track, PRIMARY KEY (ListId, TrackId));
            INSERT INTO Artist VALUES (7, 'A'), (9, NULL);
            INSERT INTO Track VALUES (1, 'x', 9, 0.5), (2, 'y', 7, 2), (3, 'z', NULL, 3);
            INSERT INTO List VALUES (5, '2020-02-29 12:00:00');
            INSERT INTO ListTrack VALUES (5, 2), (5, 3);
            """)
        let run = await ToolRun(
            "import", folder.path("shop.sqlite"), folder.path("out"), "--swift", folder.path("Models.swift"), "--json")
        #expect(run.status == 0, "\(run.errors)")
        #expect(try run.object()["objects"] as? Int == 6)
        #expect(try run.object()["pairs"] as? Int == 2)
        #expect(await ToolRun("query", folder.path("out"), "Track", "artist.Name = 'A'", "--columns", "Name").lines.last == "y")
        #expect(await ToolRun("query", folder.path("out"), "Track", "lists.count = 1", "--count").output == "2\n")
        #expect(await ToolRun("query", folder.path("out"), "List", "Made = 2020-02-29T12:00:00Z", "--count").output == "1\n")
        let classes = String(decoding: try folder.bytes("Models.swift"), as: UTF8.self)
        #expect(
            classes.contains("@Model final class Track {")
                && classes.contains("@Relationship(inverse: \\List.tracks) var lists: [List]"))
        #expect(await ToolRun("info", folder.path("shop.sqlite")).isRefused(naming: "shop.sqlite", "strata import"))
        #expect(await ToolRun("import", folder.path("shop.sqlite"), folder.path("out")).isRefused(naming: "already exists"))
        #expect(await ToolRun("import", folder.path("shop.sqlite"), folder.path("out"), "--replace").status == 0)
    }

    @Test func `a folder of CSV files of another program becomes a store`() async throws {
        let folder = try ToolFolder()
        try FileManager.default.createDirectory(atPath: folder.path("in"), withIntermediateDirectories: true)
        try Data("id,name\n1,Ann\n2,NA\n".utf8).write(to: folder.url.appending(path: "in/people.csv"))
        try Data("name,peopleId\nRex,1\nTom,1\n".utf8).write(to: folder.url.appending(path: "in/pets.csv"))
        #expect(await ToolRun("import", folder.path("in"), folder.path("out")).status == 0)
        #expect(await ToolRun("query", folder.path("out"), "pets", "people.name = 'Ann'", "--count").output == "2\n")
        #expect(await ToolRun("query", folder.path("out"), "people", "name = nil", "--count").output == "1\n")
        #expect(await ToolRun("import", folder.path("in"), folder.path("out2"), "--null-words", "Ann").status == 0)
        #expect(await ToolRun("query", folder.path("out2"), "people", "name = 'NA'", "--count").output == "1\n")
    }

    @Test func `wrong input is refused with file and line, and leaves no file`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        #expect(await ToolRun("export", folder.path("shop"), folder.path("good.jsonl")).status == 0)
        let lines = String(decoding: try folder.bytes("good.jsonl"), as: UTF8.self).split(separator: "\n").map(String.init)
        func attempt(_ lines: [String], _ texts: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws {
            try Data(lines.joined(separator: "\n").utf8).write(to: folder.url.appending(path: "bad.jsonl"))
            let run = await ToolRun("import", folder.path("bad.jsonl"), folder.path("out"))
            #expect(
                run.status == 2 && run.errors.split(separator: "\n").count == 1, "\(run.errors)", sourceLocation: sourceLocation)
            for text in texts { #expect(run.errors.contains(text), "\(run.errors)", sourceLocation: sourceLocation) }
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { $0.contains("out") }
            #expect(left.isEmpty, "\(left)", sourceLocation: sourceLocation)
        }
        try await attempt([], "bad.jsonl: is empty")
        try await attempt(Array(lines.dropFirst()), "bad.jsonl:1", "header")
        try await attempt([lines[0].replacing("\"$strata\":1", with: "\"$strata\":3")] + lines.dropFirst(), "newer")
        try await attempt([lines[0].replacing("\"source\":2", with: "\"source\":99")] + lines.dropFirst(), "schema")
        try await attempt([lines[0].replacing("\"string\"", with: "\"strong\"")] + lines.dropFirst(), "schema")
        try await attempt(lines + [lines[1]], "Band 1 occurs twice")
        try await attempt(lines + ["{\"$entity\":\"Band\",\"$id\":3"], "bad.jsonl:\(lines.count + 1)", "brace")
        try await attempt(lines + ["{\"$entity\":\"Bund\",\"$id\":3}"], "Bund")
        try await attempt(lines + ["{\"$entity\":\"Band\",\"$id\":0}"], "$id")
        try await attempt(lines + ["{\"$entity\":\"Band\",\"$id\":3,\"isActive\":true}"], "Band.name is missing")
        try await attempt(lines + ["{\"$entity\":\"Band\",\"$id\":3,\"name\":5,\"isActive\":true}"], "Band.name", "string")
        try await attempt(lines + ["{\"$entity\":\"Band\",\"$id\":3,\"name\":\"a\",\"nome\":1}"], "nome")
        try await attempt(
            lines + ["{\"$entity\":\"Album\",\"$id\":9,\"title\":\"a\",\"price\":1,\"band\":77}"], "Album 9", "Band 77")
        try await attempt(lines + ["{\"$entity\":\"Song\",\"$id\":9,\"title\":\"a\",\"seconds\":1,\"lists\":1}"], "list of ids")
        try await attempt(lines + [String(repeating: "[", count: 100_000)], "levels")
        try await attempt(lines + ["{\"$entity\":\"List\",\"$id\":8,\"$id\":9,\"name\":\"a\"}"], "$id occurs twice")
        func entry(_ key: String, _ value: Int) -> String { ",\"key\":[\"\(key)\"],\"value\":\"\(value)\"" }
        let notes = [",\"keys\":\"String\",\"values\":\"String\"", entry("k", 1), entry("j", 1), entry("k", 2)]
        try await attempt(lines + notes.map { "{\"$collection\":\"notes\"\($0)}" }, "notes has two values for the key k")
        // A unique value that occurs twice is found by the save.
        try await attempt(lines + ["{\"$entity\":\"Band\",\"$id\":3,\"name\":\"Blur\",\"isActive\":true}"], "bad.jsonl", "Blur")
    }

    /// Catches: a finite number that becomes an infinite one.
    @Test func `a number out of the range of its type is refused with line, property and value`() async throws {
        let folder = try ToolFolder()
        let model = try Model([
            EntityDescription(
                name: "Star",
                properties: [
                    .attribute(.init(name: "mass", type: .float)), .attribute(.init(name: "planets", type: .int8)),
                ])
        ])
        try await folder.fill("sky", .lmdb, model) { context in
            let star = context.insert("Star")
            star["mass"] = .double(1.5)
            star["planets"] = .int(8)
        }
        let (sky, bad) = (folder.path("sky"), folder.path("bad"))
        #expect(await ToolRun("export", sky, folder.path("good.jsonl")).status == 0)
        #expect(await ToolRun("export", sky, bad).status == 0)
        let lines = String(decoding: try folder.bytes("good.jsonl"), as: UTF8.self)
        for (old, new, property) in [("1.5", "1e300", "mass"), ("1.5", "-3.5e38", "mass"), ("8", "128", "planets")] {
            let edited = lines.replacing("\"\(property)\":\(old)", with: "\"\(property)\":\(new)")
            try Data(edited.utf8).write(to: folder.url.appending(path: "bad.jsonl"))
            let json = await ToolRun("import", folder.path("bad.jsonl"), folder.path("new"))
            #expect(json.isRefused(naming: "bad.jsonl:2", "Star.\(property) cannot be \(new)", "Correct the value"), "\(json)")
            try Data("$id,mass,planets\n1,1.5,8\n".replacing(old, with: new).utf8).write(
                to: folder.url.appending(path: "bad/Star.csv"))
            let csv = await ToolRun("import", bad, folder.path("new"))
            #expect(csv.isRefused(naming: "Star.csv:2", "\(property) cannot be \(new)", "Correct the value"), "\(csv)")
            #expect(await ToolRun("query", sky, "Star", "\(property) = \(new)").isRefused(naming: property))
        }
        try Data("$id,mass,planets\n1,-Infinity,8\n".utf8).write(to: folder.url.appending(path: "bad/Star.csv"))
        #expect(await ToolRun("import", bad, folder.path("new")).status == 0)
    }

    /// Catches: a hidden entity before the others, which moves their numbers.
    @Test func `a schema with its hidden entity in the first place is no crash`() async throws {
        let folder = try ToolFolder()
        let schema = #"""
            {"$strata":1,"schema":{"entities":[{"name":"order of A.b","columns":[\#
            {"name":"owner","type":"reference","isOptional":true,"index":"indexed","destination":1},\#
            {"name":"member","type":"reference","isOptional":true,"index":"indexed","destination":1},\#
            {"name":"position in owner","type":"data","isOptional":true,"index":"none"}],"indexes":[]},\#
            {"name":"A","columns":[],"indexes":[]}],"links":[],"version":1}}
            """#
        try Data(schema.utf8).write(to: folder.url.appending(path: "bad.jsonl"))
        let run = await ToolRun("import", folder.path("bad.jsonl"), folder.path("out"))
        #expect((0...2).contains(run.status), "\(run)")
    }

    @Test func `bytes of any kind in an import are an error and no crash`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        #expect(await ToolRun("export", folder.path("shop"), folder.path("good.jsonl")).status == 0)
        #expect(await ToolRun("export", folder.path("shop"), folder.path("good")).status == 0)
        let json = try folder.bytes("good.jsonl")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path("good"))
        var random = SeededGenerator()
        let replacements = Array("\"{}[],:0-e\\\n,".utf8) + [0, 0xFF, 0x80]
        for round in 0..<Rounds.of(60, long: 2000) {
            var bytes = json
            for _ in 0..<(1 + random.below(4)) {
                bytes[random.below(bytes.count)] = replacements[random.below(replacements.count)]
            }
            try bytes.write(to: folder.url.appending(path: "bad.jsonl"))
            let run = await ToolRun("import", folder.path("bad.jsonl"), folder.path("out\(round)"))
            #expect(
                (0...2).contains(run.status) && run.errors.split(separator: "\n").count == (run.status == 0 ? 0 : 1), "\(run)")
            let file = "good/" + files[random.below(files.count)]
            let sound = try folder.bytes(file)
            bytes = sound
            bytes[random.below(bytes.count)] = replacements[random.below(replacements.count)]
            try bytes.write(to: folder.url.appending(path: file))
            let csv = await ToolRun("import", folder.path("good"), folder.path("csv\(round)"))
            #expect(
                (0...2).contains(csv.status) && csv.errors.split(separator: "\n").count == (csv.status == 0 ? 0 : 1), "\(csv)")
            try sound.write(to: folder.url.appending(path: file))
        }
    }

    @Test func `an export of one entity has its objects only, and existing files are kept`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let run = await ToolRun("export", folder.path("shop"), "-", "--entity", "Band")
        #expect(run.lines.count == 3 && run.lines[1].contains("\"name\":\"Blur\""))
        #expect(await ToolRun("export", folder.path("shop"), "-", "--entity", "Bond").isRefused(naming: "Bond", "Band"))
        try Data("precious".utf8).write(to: folder.url.appending(path: "x.jsonl"))
        #expect(await ToolRun("export", folder.path("shop"), folder.path("x.jsonl")).isRefused(naming: "already exists"))
        #expect(try folder.bytes("x.jsonl") == Data("precious".utf8))
        #expect(await ToolRun("export", folder.path("shop"), folder.path("x.jsonl"), "--replace").status == 0)
        #expect(await ToolRun("export", folder.path("shop"), folder.path("none/x.jsonl")).isRefused(naming: "none"))
    }

    @Test(arguments: fileKinds)
    func `an export of an entity that inherits has its objects only, and is imported again`(_ kind: StoreKind) async throws {
        var truck = EntityDescription(
            name: "Truck",
            properties: [
                .attribute(.init(name: "load", type: .int64)),
                .relationship(.init(name: "tows", destination: "Vehicle", cardinality: .toOne)),
            ])
        truck.superentity = "Vehicle"
        let model = try Model([
            EntityDescription(name: "Vehicle", properties: [.attribute(.init(name: "wheels", type: .int64))]),
            EntityDescription(
                name: "Car", properties: [.attribute(.init(name: "doors", type: .int64))], superentity: "Vehicle"),
            truck,
            EntityDescription(
                name: "Tipper", properties: [.attribute(.init(name: "angle", type: .double))], superentity: "Truck"),
        ])
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, model) { context in
            for number in 0..<150 {
                let vehicle = context.insert(["Vehicle", "Car", "Truck", "Tipper"][number % 4])
                vehicle["wheels"] = .int(Int64(number))
                if number % 4 == 1 { vehicle["doors"] = 4 }
                if number % 4 > 1 { vehicle["load"] = .int(Int64(number)) }
                if number % 4 == 3 { vehicle["angle"] = 0.5 }
            }
            let tippers = try context.fetch(EntityFetchRequest("Tipper", sortBy: [.init("wheels")]))
            let cars = try context.fetch(EntityFetchRequest("Car"))
            tippers[0].setRelatedObject("tows", to: tippers[1])
            tippers[2].setRelatedObject("tows", to: cars[0])
        }
        let shop = folder.path("shop")
        for (entity, count, lost) in [("Tipper", 37, 1), ("Truck", 74, 1), ("Car", 38, 0), ("Vehicle", 150, 0)] {
            let (file, copy) = (folder.path("\(entity).jsonl"), folder.path(entity))
            let run = await ToolRun("export", shop, file, "--entity", entity)
            #expect(run.status == 0 && run.output.contains("\(count) objects"), "\(run)")
            #expect(run.errors.contains("1 references to objects that are not written") == (lost == 1), "\(run)")
            #expect(await ToolRun("import", file, copy).status == 0)
            #expect(await ToolRun("verify", copy).status == 0)
            #expect(await ToolRun("export", copy, folder.path("again.jsonl"), "--replace").status == 0)
            #expect(try folder.bytes("again.jsonl") == folder.bytes("\(entity).jsonl"), "\(entity)")
            #expect(await ToolRun("query", copy, "Vehicle", "--count").output == "\(count)\n")
            let columns = ["wheels", "load", "angle", "tows.wheels"].prefix(entity == "Tipper" ? 4 : 1).joined(separator: ",")
            let shown = [entity, "--columns", columns, "--sort", "wheels", "--json"]
            if lost == 0 {
                #expect(await ToolRun(["query", copy] + shown).output == ToolRun(["query", shop] + shown).output)
            }
        }
        let towed = await ToolRun(
            "query", folder.path("Tipper"), "Tipper", "tows is not nil", "--columns", "wheels,tows.wheels", "--json")
        #expect(towed.output == "[{\"wheels\":3,\"tows.wheels\":7}]\n", "\(towed)")
        #expect(await ToolRun("export", shop, "-", "--entity", "Tiper").isRefused(naming: "Tiper", "did you mean Tipper?"))
    }

    /// An abstract entity alone, and a hierarchy with two abstract entities.
    private static func zoo() throws -> Model {
        func entity(_ name: String, of superentity: String? = nil, isAbstract: Bool = false) -> EntityDescription {
            let attribute = AttributeDescription(name: "name of \(name)", type: .string, isOptional: true)
            return EntityDescription(
                name: name, properties: [.attribute(attribute)], superentity: superentity, isAbstract: isAbstract)
        }
        return try Model([
            entity("Rock", isAbstract: true), entity("Animal", isAbstract: true), entity("Beast", of: "Animal", isAbstract: true),
            entity("Dog", of: "Beast"), entity("Cat", of: "Beast"),
        ])
    }

    /// Catches: an import that stops the program, or that stores an object which no request finds.
    @Test(arguments: ["lmdb", "sqlite"])
    func `S184: an object of an abstract entity or of an unknown type is refused with its line`(_ kind: String) async throws {
        let folder = try ToolFolder()
        try await folder.fill("zoo", .lmdb, Self.zoo()) { $0.insert("Dog")["name of Animal"] = "Rex" }
        let (file, csv, out) = (folder.path("bad.jsonl"), folder.path("csv"), folder.path("out"))
        #expect(await ToolRun("export", folder.path("zoo"), folder.path("good.jsonl")).status == 0)
        #expect(await ToolRun("export", folder.path("zoo"), csv).status == 0)
        let json = String(decoding: try folder.bytes("good.jsonl"), as: UTF8.self)
        let table = String(decoding: try folder.bytes("csv/Animal.csv"), as: UTF8.self)
        // The schema in the first line has the types, too.
        let header = json.prefix { $0 != "\n" }
        let (object, dog) = (String(json.dropFirst(header.count)), SubentitySchema.type(of: "Dog"))
        let types: [(type: Int64, reason: String)] = [
            (0, "Animal is abstract"), (SubentitySchema.type(of: "Beast"), "Beast is abstract"), (5, "no entity has"),
        ]
        for (type, reason) in types {
            let changed = "\(header)\(object.replacing("\(dog)", with: "\(type)"))"
            try Data(changed.utf8).write(to: URL(fileURLWithPath: file))
            let run = await ToolRun("import", file, out, "--kind", kind)
            #expect(run.isRefused(naming: "bad.jsonl:2: Animal 1 ", reason, "\(dog) for Dog"), "\(run)")
            try Data(table.replacing("\(dog)", with: "\(type)").utf8).write(to: folder.url.appending(path: "csv/Animal.csv"))
            let cells = await ToolRun("import", csv, out, "--kind", kind)
            #expect(cells.isRefused(naming: "Animal.csv:2: Animal 1 ", reason, "\(dog) for Dog"), "\(cells)")
        }
        try Data(table.utf8).write(to: folder.url.appending(path: "csv/Animal.csv"))
        try Data((json + #"{"$entity":"Rock","$id":1}"#).utf8).write(to: URL(fileURLWithPath: file))
        let rock = await ToolRun("import", file, out, "--kind", kind)
        #expect(rock.isRefused(naming: "bad.jsonl:3: Rock 1 ", "Rock is abstract. Remove the object"), "\(rock)")
        // The name of an inheriting entity must fit the type.
        for (name, status) in [("Cat", 2), ("Dog", 0), ("Beast", 0)] as [(String, Int32)] {
            let named = json.replacing("\"$entity\":\"Animal\"", with: "\"$entity\":\"\(name)\"")
            try Data(named.utf8).write(to: URL(fileURLWithPath: file))
            let run = await ToolRun("import", file, out, "--kind", kind, "--replace")
            #expect(run.status == status && (status == 0 || run.isRefused(naming: "bad.jsonl:2: Cat 1 ")), "\(run)")
        }
        #expect(await ToolRun("query", out, "Dog", "--count").output == "1\n")
    }

    /// Catches: an error with the keys of the new store, and with a remedy that programs have and the tool has not.
    @Test(arguments: ["lmdb", "sqlite"], [false, true])
    func `a unique value that two objects of a file have is refused with the file and their ids`(
        _ kind: String, _ isInLaterSave: Bool
    ) async throws {
        let folder = try ToolFolder()
        let file = folder.path("bands.jsonl")
        try await folder.fill("shop", .lmdb, Shop.model) { _ in }
        #expect(await ToolRun("export", folder.path("shop"), file).status == 0)
        let last = isInLaterSave ? 4500 : 20
        var text = try String(contentsOfFile: file, encoding: .utf8)
        for id in 1...last {
            text += #"{"$entity":"Band","$id":\#(id),"name":"\#(id == last ? "Band 7" : "Band \(id)")","isActive":true}"# + "\n"
        }
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        let run = await ToolRun("import", file, folder.path("new"), "--kind", kind)
        #expect(run.isRefused(naming: file, "Band 7 and Band \(last)", "name: Band 7"), "\(run)")
        #expect(!run.errors.contains("policy"))
        #expect(!FileManager.default.fileExists(atPath: folder.path("new")))
    }

    /// Catches: an entity with the name of a relationship's file, so that objects and pairs were written into one file.
    @Test(arguments: fileKinds)
    func `a CSV file of an entity and of a relationship is refused, and nothing is written`(_ kind: StoreKind) async throws {
        let name = PropertyDescription.attribute(.init(name: "name", type: .string))
        let model = try Model([
            EntityDescription(
                name: "A",
                properties: [
                    name, .relationship(.init(name: "bs", destination: "B", inverse: "as", cardinality: .toMany)),
                ]),
            EntityDescription(
                name: "B",
                properties: [
                    name, .relationship(.init(name: "as", destination: "A", inverse: "bs", cardinality: .toMany)),
                ]),
            EntityDescription(name: "A.bs", properties: [name]),
        ])
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, model) { context in
            let objects = ["A", "B", "A.bs"].map { entity in
                let object = context.insert(entity)
                object["name"] = .string(entity)
                return object
            }
            objects[0].add(objects[1], to: "bs")
        }
        let (shop, csv) = (folder.path("shop"), folder.path("csv"))
        #expect(await ToolRun("export", shop, csv).isRefused(1, naming: "A.bs"))
        #expect(!FileManager.default.fileExists(atPath: csv))
        // A folder that would be replaced stays as it is.
        try FileManager.default.createDirectory(atPath: csv, withIntermediateDirectories: false)
        try "former".write(toFile: folder.path("csv/model.json"), atomically: true, encoding: .utf8)
        #expect(await ToolRun("export", shop, csv, "--replace").isRefused(1, naming: "A.bs"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: csv) == ["model.json"])
        #expect(try folder.bytes("csv/model.json") == Data("former".utf8))
        // The form that the message names has all of it.
        #expect(await ToolRun("export", shop, folder.path("shop.jsonl")).status == 0)
        #expect(await ToolRun("import", folder.path("shop.jsonl"), folder.path("back")).status == 0)
        #expect(await ToolRun("diff", shop, folder.path("back")).lines == ["no differences"])
    }
}
