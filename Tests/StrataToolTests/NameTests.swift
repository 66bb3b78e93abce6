import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import StrataTool

/// Properties whose names contain dots or commas, as columns of other programs do.
@Suite struct NameTests {
    /// Flowers with a place, which both have names with dots.
    private static func flowers(_ kind: StoreKind) async throws -> ToolFolder {
        let folder = try ToolFolder()
        let csv = folder.url.appending(path: "csv")
        try FileManager.default.createDirectory(at: csv, withIntermediateDirectories: true)
        try "Sepal.Length,\"Width, mm\",Species\n5.1,3,setosa\n7,2,virginica\n6.3,9,setosa\n".write(
            to: csv.appending(path: "iris.csv"), atomically: true, encoding: .utf8)
        #expect(await ToolRun("import", folder.path("csv"), folder.path("store"), "--kind", kind.rawValue).status == 0)
        return folder
    }

    @Test(arguments: fileKinds)
    func `a property whose name contains dots can be shown, compared, sorted and summed`(_ kind: StoreKind) async throws {
        let folder = try await Self.flowers(kind)
        let store = folder.path("store")
        let all = await ToolRun("query", store, "iris")
        #expect(all.status == 0 && all.lines.count == 5, "\(all)")
        let cases: [([String], String)] = [
            (["Sepal.Length > 6", "--columns", "Species"], "Species\n---------\nvirginica\nsetosa\n"),
            (["`Sepal.Length` > 6.5", "--columns", "Sepal.Length"], "Sepal.Length\n------------\n           7\n"),
            (
                ["--sort", "-Sepal.Length", "--columns", "Sepal.Length", "--limit", "1"],
                "Sepal.Length\n------------\n           7\n"
            ),
            (["--aggregate", "max(Sepal.Length)"], "max(Sepal.Length)\n-----------------\n                7\n"),
            (
                ["--aggregate", "count", "--group-by", "Sepal.Length", "--sort", "Sepal.Length", "--limit", "1"],
                "Sepal.Length  count\n------------  -----\n         5.1      1\n"
            ),
        ]
        for (arguments, output) in cases {
            let run = await ToolRun(["query", store, "iris"] + arguments)
            #expect(run.status == 0 && run.output == output, "\(arguments): \(run)")
        }
    }

    @Test(arguments: fileKinds) func `a name with a comma is written in backticks`(_ kind: StoreKind) async throws {
        let folder = try await Self.flowers(kind)
        let store = folder.path("store")
        let sorted = await ToolRun(
            "query", store, "iris", "--columns", "`Width, mm`, Species", "--sort", "-`Width, mm`", "--limit", "1")
        #expect(sorted.output == "Width, mm  Species\n---------  -------\n        9  setosa\n", "\(sorted)")
        let total = await ToolRun("query", store, "iris", "--aggregate", "sum(`Width, mm`),count", "--json")
        #expect(try total.list().first?["sum(Width, mm)"] as? Int == 14, "\(total)")
        #expect(await ToolRun("query", store, "iris", "--columns", "`Width").isRefused(naming: "backtick"))
        #expect(try NameList.names(" a b , `c,d`.e,,-`f` ") == ["a b", "c,d.e", "-f"])
    }

    @Test(arguments: StoreKind.allCases) func `the longest name that a path begins with is the property`(_ kind: StoreKind)
        async throws
    {
        let model = try Model([
            EntityDescription(
                name: "Leaf",
                properties: [
                    .attribute(.init(name: "b", type: .int64)), .attribute(.init(name: "a.b", type: .int64)),
                    .relationship(.init(name: "a", destination: "Leaf", cardinality: .toOne)),
                    .relationship(.init(name: "to.leaf", destination: "Leaf", cardinality: .toOne)),
                ])
        ])
        let bed = try TestBed(kind)
        let container = try await PersistentContainer(model: model, store: bed.description)
        try await container.write { context in
            let far = context.insert("Leaf")
            far["b"] = 10
            far["a.b"] = 20
            let near = context.insert("Leaf")
            near["b"] = 1
            near["a.b"] = 2
            near.setRelatedObject("a", to: far)
            near.setRelatedObject("to.leaf", to: far)
        }
        let found = try await container.read { context in
            let request = EntityValueRequest(
                "Leaf", fetching: [.property("a.b"), .property("to.leaf.a.b"), .property("a.a.b"), .property("to.leaf.b")],
                matching: .all([.equal("to.leaf.a.b", 20), .equal("a.b", 2)]), sortBy: [.init("to.leaf.a.b"), .init("a.b")])
            return try context.fetch(request).map(\.values)
        }
        #expect(found == [[2, 20, 20, 10]])
        try await container.close()
    }

    /// Catches: a minus in backticks that was that of a descending sort, by a property without it.
    @Test(arguments: fileKinds) func `a minus in backticks is part of the name`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        let csv = folder.url.appending(path: "csv")
        try FileManager.default.createDirectory(at: csv, withIntermediateDirectories: true)
        try "x,-x\n1,3\n2,1\n3,2\n".write(to: csv.appending(path: "points.csv"), atomically: true, encoding: .utf8)
        let store = folder.path("store")
        #expect(await ToolRun("import", folder.path("csv"), store, "--kind", kind.rawValue).status == 0)
        for (sort, expected) in [("`-x`", [2, 3, 1]), ("-`-x`", [1, 3, 2]), ("x", [1, 2, 3]), ("-x", [3, 2, 1])] {
            let run = await ToolRun("query", store, "points", "--columns", "x,`-x`", "--sort", sort, "--json")
            #expect(run.status == 0, "\(sort): \(run)")
            #expect(try run.list().compactMap { $0["x"] as? Int } == expected, "\(sort): \(run)")
        }
        for (sort, expected) in [("`-x`", [1, 2, 3]), ("-`-x`", [3, 2, 1])] {
            let run = await ToolRun(
                "query", store, "points", "--aggregate", "count", "--group-by", "`-x`", "--sort", sort, "--json")
            #expect(run.status == 0, "\(sort): \(run)")
            #expect(try run.list().compactMap { $0["-x"] as? Int } == expected, "\(sort): \(run)")
        }
    }

    @Test func `a minus before backticks sorts descending, and one in them does not`() throws {
        let sort = try NameList.sort("`-x`, -`-x`,-x,`-a,-b`,x-y")
        #expect(sort.map(\.attribute) == ["-x", "-x", "x", "-a,-b", "x-y"])
        #expect(sort.map { $0.direction == .descending } == [false, true, true, false, false])
        #expect(try NameList.names("`-x`,-y") == ["-x", "-y"])
    }

    /// Catches: no facts about the whole store because one name cannot be that of a class.
    @Test(arguments: ["lmdb", "sqlite"])
    func `info prints its facts as JSON for a name that no class can have`(_ kind: String) async throws {
        let folder = try ToolFolder()
        try Data("id,\"Price\n(EUR)\"\n1,2\n".utf8).write(to: folder.url.appending(path: "goods.csv"))
        #expect(await ToolRun("import", folder.path("goods.csv"), folder.path("new"), "--kind", kind).status == 0)
        let facts = await ToolRun("info", folder.path("new"), "--json")
        #expect(facts.status == 0 && facts.output.contains("\"goods\""), "\(facts)")
    }
}
