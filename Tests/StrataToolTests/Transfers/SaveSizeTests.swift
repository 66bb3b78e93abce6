import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import StrataTool

/// The number of objects and bytes that an import writes per save.
@Suite struct SaveSizeTests {
    /// Objects with values of one size. The values share their bytes.
    private final class Blobs: ObjectSource {
        let model: Model
        let notes: [String] = []
        let objectCount: Int?
        private var values: [Value]

        init(_ values: [Value]) throws {
            model = try Model([
                EntityDescription(
                    name: "Blob",
                    properties: [
                        .attribute(.init(name: "bytes", type: .data, isOptional: true)),
                        .attribute(.init(name: "text", type: .string, isOptional: true)),
                    ])
            ])
            self.values = values.reversed()
            objectCount = values.count
        }

        func next() throws -> TransferObject? {
            guard let value = values.popLast() else { return nil }
            let isText = if case .string = value { true } else { false }
            return TransferObject(
                entity: 0, id: UInt64((objectCount ?? 0) - values.count), values: isText ? [.null, value] : [value, .null])
        }
    }

    /// Fills a store, and returns the number of objects of each save.
    private static func saves(_ kind: StoreKind, _ values: [Value]) async throws -> [Int] {
        let folder = try ToolFolder()
        let sink = StoreSink(path: folder.path("out"), kind: kind == .sqlite ? .sqlite : .lmdb, existing: .refuse)
        let summary = try await sink.fill(from: Blobs(values), in: "blobs")
        #expect(summary.objects == [values.count])
        return try await ToolRun("history", folder.path("out"), "--json").lines.map { line in
            let save = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(save?["changes"] as? [Any]).count
        }
    }

    @Test(arguments: fileKinds) func `a save of large values ends after 16 MiB`(_ kind: StoreKind) async throws {
        let data = Value.data(Data(count: 6 << 20))
        let text = Value.string(String(repeating: "x", count: 6 << 20))
        #expect(try await Self.saves(kind, [data, data, text, data, text, data, data]) == [3, 3, 1])
        #expect(try await Self.saves(kind, [.data(Data(count: 17 << 20)), data, .null]) == [1, 2])
    }

    @Test(arguments: fileKinds) func `a save of small values ends after 2,000 objects`(_ kind: StoreKind) async throws {
        #expect(try await Self.saves(kind, Array(repeating: "small", count: 4100)) == [2000, 2000, 100])
    }
}
