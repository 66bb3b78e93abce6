import Foundation
import Testing

@testable import Datasets

extension Dataset {
    /// Reads an input in memory, and once more with each column in a temporary file, and expects the same.
    static func readInMemoryAndInFiles(_ path: String, options: DatasetOptions = DatasetOptions()) throws -> Dataset {
        let expected = try Dataset.read(path, options: options)
        var options = options
        options.scratchFolder = FileManager.default.temporaryDirectory
        options.bytesInMemory = 0
        let found = try Dataset.read(path, options: options)
        #expect(found.tables.map(\.name) == expected.tables.map(\.name) && found.notes == expected.notes)
        #expect(found.lostReferences == expected.lostReferences && found.links.map(\.pairs) == expected.links.map(\.pairs))
        for (table, known) in zip(found.tables, expected.tables) {
            #expect(table.rowCount == known.rowCount && table.attributes.map(\.name) == known.attributes.map(\.name))
            #expect(table.references.map(\.rows) == known.references.map(\.rows) && table.kinds == known.kinds)
            for (attribute, other) in zip(table.attributes, known.attributes) {
                #expect(attribute.type == other.type && attribute.isOptional == other.isOptional)
                #expect(attribute.values == other.values, "\(table.name).\(attribute.name)")
                #expect(attribute.values.isSpilled == !attribute.values.isEmpty && !other.values.isSpilled)
            }
        }
        return expected
    }
}
