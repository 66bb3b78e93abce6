import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import StrataTool
import Synchronization
import TestSupport
import Testing

/// The classes that `strata model` prints compile with the macros.
@Suite(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
struct GeneratedModelTests {
    @Test func `printed classes of any names and types compile`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let attributes = ColumnType.allCases.filter { $0 != .reference }.flatMap { type -> [PropertyDescription] in
            [
                .attribute(.init(name: type.rawValue, type: type, index: type == .string ? .unique : .none)),
                .attribute(.init(name: "\(type.rawValue) or nil", type: type, isOptional: true)),
            ]
        }
        let model = try Model([
            EntityDescription(
                name: "Thing",
                properties: attributes + [
                    .attribute(.init(name: "class", type: .int64, index: .indexed)), .attribute(.init(name: "id", type: .int64)),
                    .relationship(.init(name: "parent", destination: "Thing", cardinality: .toOne)),
                    .relationship(.init(name: "first owner", destination: "Owner", cardinality: .toOne)),
                    .relationship(.init(name: "second", destination: "Owner", cardinality: .toOne)),
                    .relationship(.init(name: "friends", destination: "Thing", cardinality: .toMany)),
                    .relationship(.init(name: "fans", destination: "Owner", cardinality: .toMany)),
                ], indexes: [.index("class", "id"), .unique("int8", "parent")]),
            EntityDescription(
                name: "Owner",
                properties: [.relationship(.init(name: "things", destination: "Thing", cardinality: .toMany))]),
        ])
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(model: model)
        try await container.close()
        let output = Mutex("")
        let console = Console(write: { text in output.withLock { $0 += text } }, complain: { Issue.record("\($0)") })
        #expect(await StrataProgram.run(["model", bed.file.path], console: console) == 0)
        let source = output.withLock { $0 }
        let messages = try await compiler.messages(about: source)
        #expect(messages.filter { $0.contains("error:") || $0.contains("warning:") } == [], "\(source)")
    }

    /// Imports a file and returns the compiler's complaints about the printed classes.
    private func complaints(aboutClassesOf path: String) async throws -> [String] {
        let compiler = try #require(SwiftCompiler.shared)
        let folder = FileManager.default.temporaryDirectory.appending(path: "strata-generated-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let source = folder.appending(path: "Models.swift").path
        // Notes about the import are complaints, too.
        let said = Mutex("")
        let console = Console(write: { _ in }, complain: { text in said.withLock { $0 += text } })
        let words = ["import", path, folder.appending(path: "out").path, "--swift", source]
        #expect(await StrataProgram.run(words, console: console) == 0, "\(said.withLock { $0 })")
        let messages = try await compiler.messages(about: String(contentsOfFile: source, encoding: .utf8))
        return messages.filter { $0.contains("error:") || $0.contains("warning:") }
    }

    @Test func `classes of tables that are named like types compile`() async throws {
        let model = try Model(
            ["Data", "Date", "UUID", "String", "Int", "Model", "Array", "Optional", "Foundation", "people"].map { name in
                EntityDescription(
                    name: name,
                    properties: [
                        .attribute(.init(name: "x", type: .data)), .attribute(.init(name: "y", type: .date)),
                        .attribute(.init(name: "z", type: .uuid)), .attribute(.init(name: "String", type: .string)),
                        .attribute(.init(name: "n", type: .int64, defaultValue: 7)),
                        .relationship(.init(name: "people", destination: "people", cardinality: .toOne)),
                        .relationship(.init(name: "parts", destination: "Data", cardinality: .toMany)),
                    ])
            })
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(model: model)
        try await container.close()
        #expect(try await complaints(aboutClassesOf: bed.file.path) == [])
    }

    private static let data = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/data")
    private static let files = [
        "chinook.sqlite", "coredata/SampleModel_V2.sqlite", "coredata/SampleModel2_V2.sqlite", "coredata/swiftdata.store",
    ].filter { FileManager.default.fileExists(atPath: data.appending(path: $0).path) }

    @Test(.enabled(if: !files.isEmpty, "the folder of real files is missing"), arguments: files)
    func `the classes of real files compile`(_ file: String) async throws {
        #expect(try await complaints(aboutClassesOf: Self.data.appending(path: file).path) == [])
    }
}
