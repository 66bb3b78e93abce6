import ObjectGraph
import StoreInterface
import StoreModel

/// The examples of ordered relationships, compiled. The architecture tests compare both.
@MainActor private enum OrderingExamples {
    static func describing() -> RelationshipDescription {
        // Sources/ObjectGraph/ObjectGraph.docc/OrderedRelationships.md
        let chapters = RelationshipDescription(
            name: "chapters", destination: "Chapter", inverse: "book", cardinality: .toMany, isOrdered: true)
        // end
        return chapters
    }

    static func arranging(_ book: ManagedObject, _ preface: ManagedObject) {
        // Sources/ObjectGraph/ObjectGraph.docc/OrderedRelationships.md
        var chapters = book.relatedObjects("chapters")
        chapters.swapAt(0, 1)
        chapters.insert(preface, at: 0)
        book.setRelatedObjects("chapters", to: chapters)
        // end
    }
}
