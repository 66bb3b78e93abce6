import StoreInterface
import StoreModel

/// The contents of one save of an import. The writer's queue converts them to a layer.
///
/// If the writer repeats its transaction, the layer is created again from the same keys.
protocol ImportChunk: Sendable {
    /// A row as the import reads it.
    associatedtype Element

    /// The entity whose objects the save inserts and updates.
    var entityNumber: EntityIndex { get }
    /// The number of rows that were read for the save.
    var count: Int { get }
    /// The maximum number of objects that the save inserts.
    var keyCount: Int { get }
    /// Allocated keys, at least ``keyCount``, ascending within each range. The save uses them in order.
    var keys: [Range<ObjectKey>] { get set }
    /// An object of the entity that the import writes for itself and that is no row. Results do not count it.
    var hiddenObject: ObjectKey? { get }

    mutating func reserveCapacity(_ count: Int)

    /// Adds a row.
    ///
    /// - Parameters:
    ///   - row: The row.
    ///   - number: The number of the row in the whole import, for errors.
    mutating func append(_ row: Element, number: Int) throws

    /// Returns the changes of the rows over the state that the save follows.
    func layer(over state: StoreState, schema: StoreSchema) throws -> Layer
}
