import StrataSwiftData

extension LayerWriter {
    struct Initializer {
        let name: String
        /// Makes an object. The argument says whether to pass new objects where none would do. Returns also the objects that were passed,
        /// by the name of the parameter, or nil if the initializer cannot be called.
        let call: (_ withObjects: Bool) throws -> (model: AnyModel, arguments: [String: [AnyModel]])?
    }

    /// Adds an initializer of a model, with its labels in the name. Does nothing if the class is not in the schema.
    public func add<T: StrataSwiftData.PersistentModel, each P>(
        _ name: String, _ initializer: @escaping (repeat each P) throws -> T
    ) {
        guard models.values.contains(where: { $0 == T.self }) else { return }
        let labels = name.drop { $0 != "(" }.dropFirst().split(separator: ":").map(String.init)
        let call = Initializer(name: name) { [unowned self] withObjects in
            var position = 0
            var passed: [String: [AnyModel]] = [:]
            func next<V>(_ type: V.Type) throws -> V {
                let (argument, objects) = try self.argument(type, withObjects: withObjects)
                if position < labels.count, let objects { passed[labels[position]] = objects }
                position += 1
                return argument
            }
            do { return (try initializer(repeat try next((each P).self)), passed) } catch let error as LayerError {
                notes.insert("\(name) is not called: \(error)")
                return nil
            }
        }
        initializers[T.entityName, default: []].append(call)
    }

    /// Returns an argument: a sample, or objects, which are new or as few as possible.
    private func argument<P>(_ type: P.Type, withObjects: Bool) throws -> (P, [AnyModel]?) {
        let wrapped = (type as? any OptionalSample.Type)?.wrapped ?? type
        var objects: [AnyModel]?
        var argument: Any?
        if let model = wrapped as? AnyModelType {
            objects = withObjects || wrapped == type ? [try make(model)] : []
            argument = objects?.first ?? (type as? any OptionalSample.Type)?.empty
        } else if let model = (wrapped as? any ArraySample.Type)?.element as? AnyModelType {
            objects = withObjects ? [try make(model), try make(model)] : []
            argument = objects
        } else {
            argument = samples.value(type, number: number)
        }
        guard let argument = argument as? P else { throw LayerError("there is no sample of \(type)") }
        return (argument, objects)
    }
}
