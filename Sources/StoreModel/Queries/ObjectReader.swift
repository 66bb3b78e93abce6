/// A reader of objects in one immutable state, by entity and key: a store's snapshot, or layers over a snapshot.
public protocol ObjectReader: Sendable {
    /// The schema of the state, whose entities and columns the methods take.
    var schema: StoreSchema { get }
    /// Returns the value of a column, or nil if the object does not exist.
    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value?
    /// Returns whether the object exists.
    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool
    /// Returns the keys at the far end of a to-many relationship, ascending. Each key occurs once. Returns an empty list for a
    /// missing object.
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey]
}
