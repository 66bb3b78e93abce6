import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct PageMergeTests {
    @Test func randomMergesHoldWhatADictionaryHolds() throws {
        var random = SeededGenerator(test: "random merges")
        for _ in 0..<150 {
            let schema = random.schema()
            let layout = try PageLayout(schema, schemaNumber: 7)
            var reference = PageReference(schema)
            var bytes: [UInt8] = []
            var generation = Generation(rawValue: random.next() >> UInt64(random.below(63) + 1))
            for _ in 0..<12 {
                generation = generation.advanced(by: random.below(2000))
                guard let changes = reference.change(&random, generation: generation) else { continue }
                bytes = try merge(bytes, changes, layout)
                guard !bytes.isEmpty else {
                    #expect(reference.objects.isEmpty)
                    continue
                }
                try bytes.withUnsafeBytes {
                    let page = try ObjectPage($0, layout: layout, check: .full)
                    let difference = try reference.difference(page)
                    #expect(difference == nil, "seed \(random.seed)")
                }
            }
        }
    }
}

/// Merges changes into the bytes of a page, or into no page, and returns the new bytes.
func merge(_ old: [UInt8], _ changes: LayerPage, _ layout: PageLayout) throws -> [UInt8] {
    try old.withUnsafeBytes { bytes in
        let page = old.isEmpty ? nil : try ObjectPage(bytes, layout: layout, check: .checksum)
        let merge = try PageMerge(old: page, changes: changes, layout: layout)
        return [UInt8](unsafeUninitializedCapacity: merge.byteCount) { buffer, count in
            merge.write(into: UnsafeMutableRawBufferPointer(buffer))
            count = merge.byteCount
        }
    }
}
