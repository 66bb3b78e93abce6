import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Rows of values as types of the program, without creating objects (S133).
extension ManagedObjectContext {
    /// Returns the rows of a request as values of a `Decodable` type, whose coding keys are the names of the request's columns.
    ///
    /// ```swift
    /// struct Summary: Decodable {
    ///     var album: ObjectID?
    ///     var plays: Int
    /// }
    ///
    /// let request = ValueRequest<Track>(
    ///     [.property(\.album), .sum(\.playCount).named("plays")], groupBy: [.property(\.album)])
    /// let summaries = try context.rows(request, as: Summary.self)
    /// ```
    /// - Throws: ``FetchError``; ``FetchError/undecodableRow(type:column:reason:)`` names the column that does not fit.
    public func rows<M: PersistentModel, T: Decodable>(_ request: ValueRequest<M>, as type: T.Type) throws -> [T] {
        try fetch(request).map { try $0.decode(type) }
    }

    /// Returns the rows of a request by names as values of a `Decodable` type, as for a typed request.
    public func rows<T: Decodable>(_ request: EntityValueRequest, as type: T.Type) throws -> [T] {
        try fetch(request).map { try $0.decode(type) }
    }

    /// Returns the rows of a request as tuples, in the order of its columns: `try context.rows(request, as: (String, Int).self)`.
    ///
    /// - Throws: ``FetchError``; ``FetchError/undecodableRow(type:column:reason:)`` names the column that does not fit.
    @_disfavoredOverload
    public func rows<M: PersistentModel, each V: AttributeValue>(
        _ request: ValueRequest<M>, as type: (repeat each V).Type
    ) throws -> [(repeat each V)] {
        try fetch(request).map { row in
            var position = -1
            func next<T: AttributeValue>(_ type: T.Type) throws -> T {
                position += 1
                return try row.element(position, type)
            }
            return (repeat try next((each V).self))
        }
    }

    /// Returns attributes of the objects that a predicate selects, as tuples typed by key paths.
    ///
    /// ```swift
    /// for (title, plays) in try context.rows(\Track.title, \.playCount, where: #Predicate { $0.playCount > 100 }) {
    ///     print(title, plays)
    /// }
    /// ```
    /// Reads only these columns.
    /// - Throws: ``FetchError``.
    public func rows<M: PersistentModel, each V: AttributeValue>(
        _ attributes: repeat KeyPath<M, each V>, where predicate: Predicate<M>? = nil,
        sortBy: [ValueRequest<M>.Sort] = [], limit: Int? = nil, offset: Int = 0
    ) throws -> [(repeat each V)] {
        var columns: [ModelColumn<M>] = []
        repeat columns.append(.property(each attributes))
        let request = ValueRequest<M>(columns, where: predicate, sortBy: sortBy, limit: limit, offset: offset)
        return try rows(request, as: (repeat each V).self)
    }

    /// Returns the rows of a request as tuples that also have raw-value and `Codable` types.
    ///
    /// - Throws: ``FetchError``; ``FetchError/undecodableRow(type:column:reason:)`` names the column that does not fit.
    @_disfavoredOverload
    public func rows<M: PersistentModel, each V>(
        _ request: ValueRequest<M>, as type: (repeat each V).Type
    ) throws -> [(repeat each V)] {
        try fetch(request).map { row in
            var position = -1
            func next<T>(_ type: T.Type) throws -> T {
                position += 1
                return try row.dynamicElement(position, type)
            }
            return (repeat try next((each V).self))
        }
    }

    /// Returns attributes of the objects that a predicate selects, as tuples that also have raw-value and `Codable` types.
    /// - Throws: ``FetchError``; ``FetchError/undecodableRow(type:column:reason:)`` if a property is a relationship.
    @_disfavoredOverload
    public func rows<M: PersistentModel, each V>(
        _ attributes: repeat KeyPath<M, each V>, where predicate: Predicate<M>? = nil,
        sortBy: [ValueRequest<M>.Sort] = [], limit: Int? = nil, offset: Int = 0
    ) throws -> [(repeat each V)] {
        var columns: [ModelColumn<M>] = []
        repeat columns.append(ModelColumn(.property(M.name(of: each attributes))))
        let request = ValueRequest<M>(columns, where: predicate, sortBy: sortBy, limit: limit, offset: offset)
        return try rows(request, as: (repeat each V).self)
    }
}
