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
    /// The sort that the store can make; nil if it is not by a stored property of the model.
    var storeSort: SortBy<Compared>? {
        guard let keyPath, Compared.columnsByKeyPath[keyPath] != nil else { return nil }
        let isText = Swift.type(of: keyPath).valueType is any Text.Type
        return SortBy(
            path: keyPath, order == .forward ? .ascending : .descending, isText ? .localizedStandard : .codePoints)
    }
}

private protocol Text {}
extension String: Text {}
extension Optional: Text where Wrapped == String {}
