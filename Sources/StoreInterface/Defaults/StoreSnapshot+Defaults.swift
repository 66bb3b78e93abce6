import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension StoreSnapshot {
    /// Returns whether the object has a version.
    public func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool { try version(entity, key) != nil }

    /// Returns the page without further checks, the default for stores without checksums.
    public func checkedPage(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? { try page(entity, number) }

    /// true, the default for snapshots that show one state for as long as they are referenced.
    public var isFixed: Bool { true }

    /// 64, the default for pages that have copies of their values.
    public var pagesWorthKeeping: Int { 64 }

    /// Returns the object with these bytes in a column by a look-up of a copy.
    public func holder(_ entity: EntityIndex, column: ColumnIndex, of data: UnsafeRawBufferPointer) throws -> ObjectKey? {
        try lookup(entity, column: column, value: .data(Data(data))).first
    }

    /// Returns the keys of the objects that have all of the values, by a query of the columns.
    ///
    /// Values of another storage class than their column are found in no object.
    public func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey] {
        // A value of another storage class occurs in no object, though a comparison may find it equal.
        guard zip(columns, values).allSatisfy({ $1.isNull || schema.entities[entity].columns[$0].type.holds($1) }) else {
            return []
        }
        let parts = zip(columns, values).map { StorePredicate.compare($0, .equal, to: $1) }
        return try keys(StoreQuery(entity: entity, predicate: .and(parts)))
    }
}

extension StoreSnapshot {
    /// Computes the groups by reading each selected object: the reference implementation.
    public func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups {
        var groups = AggregateGroups(aggregation)
        let entity = aggregation.entity
        for key in try keys(StoreQuery(entity: entity, predicate: aggregation.predicate)) {
            try groups.add {
                try value(entity, key: key, column: aggregation.groupBy[$0]) ?? .null
            } value: {
                try value(entity, key: key, column: $0) ?? .null
            }
        }
        return groups
    }
}

extension StoreSnapshot {
    /// Returns the objects by a query of the column, and reads the bytes of each.
    public func orderedData(_ query: OrderedDataQuery) throws -> OrderedData { try readOrderedData(query) }

    /// Answers a query by the objects, for stores whose index does not have the whole bytes.
    package func readOrderedData(_ query: OrderedDataQuery) throws -> OrderedData {
        var result = OrderedData()
        for key in try keys(query.storeQuery) {
            guard case .data(let data) = try value(query.entity, key: key, column: query.column) else { continue }
            data.withUnsafeBytes { result.append(key, data: $0) }
        }
        return result
    }
}

extension StoreSnapshot {
    /// Returns the parts of a value by reading the whole value.
    public func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? {
        try value(entity, key: key, column: column).flatMap { WholeValueParts($0) }
    }
}

extension StorePage {
    /// Returns the value of a column by two calls, or nil if the slot is empty.
    public func presentValue(_ slot: Int, _ column: ColumnIndex) throws -> Value? {
        try contains(slot) ? value(slot, column) : nil
    }

    /// Calls `body` with the bytes of a copied value.
    public func withData(
        _ slot: Int, column: ColumnIndex, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Bool {
        guard case .data(let data)? = try presentValue(slot, column) else { return false }
        try data.withUnsafeBytes(body)
        return true
    }

    /// Returns whether ``presence`` has the slot.
    public func contains(_ slot: Int) throws -> Bool { presence >> UInt64(slot) & 1 != 0 }

    /// Returns the slots of a mask that are in ``presence``.
    public func present(among slots: UInt64) throws -> UInt64 { presence & slots }
}
