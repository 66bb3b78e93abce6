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
}
