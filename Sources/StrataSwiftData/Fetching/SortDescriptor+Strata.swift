import ObjectGraph
import StoreInterface
import StoreModel

#if !canImport(Darwin)
    extension String.StandardComparator {
        /// The order of titles: without case and diacritics, and digits by their numbers. A fetch sorts strings this way.
        ///
        /// In a fetch it is the same as `.lexical`, which is the only comparator that Foundation has on Linux.
        public static var localizedStandard: String.StandardComparator { .lexical }
        /// The same as ``localizedStandard``.
        public static var localized: String.StandardComparator { .lexical }
    }
#endif

extension SortDescriptor where Compared: PersistentModel {
    /// The sort that the store can make; nil if it is not by a stored property of the model, or if Swift orders the values otherwise than
    /// what is stored.
    var storeSort: SortBy<Compared>? {
        guard let keyPath, Compared.columnsByKeyPath[keyPath] != nil else { return nil }
        let type = Swift.type(of: keyPath).valueType
        let isText = type is any Text.Type
        guard isText || hasStoredOrder(type) else { return nil }
        return SortBy(
            path: keyPath, order == .forward ? .ascending : .descending, isText ? .localizedStandard : .codePoints)
    }
}

private func hasStoredOrder(_ type: Any.Type) -> Bool {
    let type = (type as? any OptionalType.Type)?.wrapped ?? type
    // A Bool is not Comparable, and has one order only.
    return (type as? any Comparable.Type).map { StoredOrder.isOrder(of: $0) } ?? (type == Bool.self)
}

private protocol Text {
    var text: String? { get }
}
extension String: Text {
    var text: String? { self }
}
extension Optional: Text where Wrapped == String {
    var text: String? { self }
}

extension SortDescriptor where Compared: PersistentModel {
    /// Returns the sort keys of the objects, in the order in which the store sorts: texts as
    /// ``String/StandardComparator/localizedStandard``, and NaN after all numbers. Returns nil if Swift orders the values otherwise than
    /// what is stored.
    func keys(of objects: [Compared]) -> [Value]? {
        guard let keyPath else { return nil }
        let type = Swift.type(of: keyPath).valueType
        if type is any Text.Type {
            return objects.map { object in
                ((object[keyPath: keyPath] as? any Text)?.text).map { .string(TextOrder.localizedStandard.key($0)) } ?? .null
            }
        }
        guard type is any AttributeValue.Type, hasStoredOrder(type) else { return nil }
        return objects.map { ($0[keyPath: keyPath] as? any AttributeValue)?.storeValue ?? .null }
    }

    /// Returns the order of two objects of a list.
    /// - Parameters:
    ///   - a: The position of one object.
    ///   - b: The position of the other.
    ///   - objects: The list.
    ///   - keys: The result of ``keys(of:)`` for the list.
    func order(_ a: Int, _ b: Int, of objects: [Compared], keys: [Value]?) -> ComparisonResult {
        guard let keys else { return compare(objects[a], objects[b]) }
        let result = keys[a].order(keys[b])
        if result == 0 { return .orderedSame }
        return (result < 0) == (order == .forward) ? .orderedAscending : .orderedDescending
    }
}
