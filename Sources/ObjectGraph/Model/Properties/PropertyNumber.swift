/// Counts columns and relationships by the types of properties, for the numbers that the `@Model` macro cannot read from the source.
///
/// The compiler chooses an overload per property, and optimized builds fold the calls into constants.
public enum PropertyNumber {
    // MARK: Columns: every property has one except a to-many relationship

    /// Returns the column after a property with a column, and after `others` more columns.
    @inlinable @inline(__always)
    public static func column<V>(_ column: Int, after type: V.Type, then others: Int) -> Int { column + 1 + others }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<M: PersistentModel>(_ column: Int, after type: [M].Type, then others: Int) -> Int {
        column + others
    }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<M: PersistentModel>(_ column: Int, after type: [M]?.Type, then others: Int) -> Int {
        column + others
    }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<M: PersistentModel>(_ column: Int, after type: Set<M>.Type, then others: Int) -> Int {
        column + others
    }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<M: PersistentModel>(_ column: Int, after type: Set<M>?.Type, then others: Int) -> Int {
        column + others
    }

    // MARK: Relationships

    /// Returns the number after an attribute, which is no relationship, and after `others` relationships.
    @inlinable @inline(__always)
    public static func relationship<V>(_ number: Int, after type: V.Type, then others: Int) -> Int { number + others }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<M: PersistentModel>(_ number: Int, after type: M.Type, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<M: PersistentModel>(_ number: Int, after type: M?.Type, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<M: PersistentModel>(_ number: Int, after type: [M].Type, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<M: PersistentModel>(_ number: Int, after type: [M]?.Type, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<M: PersistentModel>(_ number: Int, after type: Set<M>.Type, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<M: PersistentModel>(_ number: Int, after type: Set<M>?.Type, then others: Int) -> Int {
        number + 1 + others
    }

    // MARK: Properties without a type in the source. The closures are never called.

    /// Returns the column after a property with a column, and after `others` more columns.
    @inlinable @inline(__always)
    public static func column<R, V>(_ column: Int, of property: (R) -> V, then others: Int) -> Int { column + 1 + others }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<R, M: PersistentModel>(_ column: Int, of property: (R) -> [M], then others: Int) -> Int {
        column + others
    }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<R, M: PersistentModel>(_ column: Int, of property: (R) -> [M]?, then others: Int) -> Int {
        column + others
    }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<R, M: PersistentModel>(_ column: Int, of property: (R) -> Set<M>, then others: Int) -> Int {
        column + others
    }
    /// Returns the column after a to-many relationship, which has none, and after `others` columns.
    @inlinable @inline(__always)
    public static func column<R, M: PersistentModel>(_ column: Int, of property: (R) -> Set<M>?, then others: Int) -> Int {
        column + others
    }
    /// Returns the number after an attribute, which is no relationship, and after `others` relationships.
    @inlinable @inline(__always)
    public static func relationship<R, V>(_ number: Int, of property: (R) -> V, then others: Int) -> Int { number + others }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<R, M: PersistentModel>(_ number: Int, of property: (R) -> M, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<R, M: PersistentModel>(_ number: Int, of property: (R) -> M?, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<R, M: PersistentModel>(_ number: Int, of property: (R) -> [M], then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<R, M: PersistentModel>(_ number: Int, of property: (R) -> [M]?, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<R, M: PersistentModel>(_ number: Int, of property: (R) -> Set<M>, then others: Int) -> Int {
        number + 1 + others
    }
    /// Returns the number after a relationship, and after `others` more.
    @inlinable @inline(__always)
    public static func relationship<R, M: PersistentModel>(_ number: Int, of property: (R) -> Set<M>?, then others: Int) -> Int {
        number + 1 + others
    }
}
