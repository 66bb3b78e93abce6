import StoreInterface
import StoreModel

extension ManagedObject {
    /// Sets a column to an encoded value. A value with the content of the saved one is no change (S032), also if its bytes differ.
    ///
    /// The encoder of a value may write the same content differently: the elements of a set within a structure, and the entries of a
    /// dictionary whose keys are no strings, are in another order in each process. So the saved bytes, if they differ, are decoded and
    /// encoded again in this process. The type's own `==` does not decide, because it may ignore some of the content.
    @usableFromInline
    func setEncoded<V: Codable>(_ column: ColumnIndex, to attribute: EncodedAttribute<V>) {
        let stored = attribute.storeValue
        if let old = valueToReplace(column, by: stored) {
            if let known = EncodedAttribute<V>(old) {
                if let bytes = try? AttributeJSON.encode(known.value), .data(bytes) == stored { return }
            } else {
                noteReplacement(of: old, in: column, EncodedAttribute<V>.self)
            }
        }
        setRawValue(column, to: stored)
    }
}
