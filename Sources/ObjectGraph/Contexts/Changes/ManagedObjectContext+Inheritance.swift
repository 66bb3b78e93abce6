import StoreInterface
import StoreModel

/// Objects of hierarchies: the entity of an object, and its class (S180). Without inheritance, the cost is one test of a flag.
extension ManagedObjectContext {
    /// Returns the entity of an object, with the properties that the object has.
    @inline(__always)
    func definition(of object: ManagedObject) -> Entity {
        storedModel.hasInheritance ? member(of: object) : storedModel.entities[object.entity]
    }

    /// Reads the type of an object once. The type never changes. An object whose record is gone counts as one of the entity at the head.
    @inline(never)
    private func member(of object: ManagedObject) -> Entity {
        guard let hierarchy = storedModel.hierarchies[object.entity] else { return storedModel.entities[object.entity] }
        if object.member != ManagedObject.unknownMember { return hierarchy.members[Int(object.member)] }
        let type = read(object, hierarchy.typeColumn) ?? lastValue(object.entity, key: object.key, column: hierarchy.typeColumn)
        guard let member = hierarchy.member(ofType: type) else { return hierarchy.members[0] }
        object.member = UInt8(clamping: member)
        return hierarchy.members[member]
    }

    /// Notes the entity of an object that is being inserted.
    @inline(__always)
    func note(_ entity: Entity, of object: ManagedObject) {
        if let inheritance = entity.inheritance { object.member = UInt8(clamping: inheritance.member) }
    }

    /// Returns whether an object is one of an entity. An object whose record is gone counts as one of each entity of its hierarchy.
    func isObject(_ object: ManagedObject, of entity: Entity) -> Bool {
        guard entity.number == object.entity else { return false }
        guard entity.inheritance != nil else { return true }
        let own = definition(of: object)
        return object.member == ManagedObject.unknownMember || entity.includes(own)
    }

    /// Returns the model of an object whose class may be a subclass of `M`.
    @inline(never)
    func wrappedMember<M: PersistentModel>(_ object: ManagedObject, as type: M.Type) -> M {
        let own = definition(of: object, askedFor: type)
        guard object.member != ManagedObject.unknownMember, let type = storedModel.type(of: own), type != M.self else {
            return M(managedObject: object)
        }
        guard let model = type.init(managedObject: object) as? M else {
            preconditionFailure("\(object.objectID) is a \(type), not a \(M.self)")
        }
        return model
    }

    /// Returns the entity of an object of a hierarchy. An object whose record is gone becomes one of the class that is asked for, because the
    /// anchor of that class finds it by the name of its entity.
    private func definition<M: PersistentModel>(of object: ManagedObject, askedFor type: M.Type) -> Entity {
        let own = definition(of: object)
        guard own.inheritance != nil, object.member == ManagedObject.unknownMember,
            let asked = storedModel.entity(for: type), asked.number == object.entity, asked.inheritance?.isHead == false
        else { return own }
        note(asked, of: object)
        return asked
    }

    /// Replaces the model of an object that was wrapped while its record, and so its class, could not be read: before another context saved
    /// it, or after it was deleted. The former model stays usable as one of its class.
    @inline(never)
    func wrappedAgain<M: PersistentModel>(_ object: ManagedObject, as type: M.Type) -> M {
        let (former, wasRetained) = (object.model, object.isRetained)
        registry.release(object)
        object.model = nil
        // The anchor of the former model.
        if object.unattachedAnchors < .max { object.unattachedAnchors += 1 }
        let model = wrappedMember(object, as: type)
        object.claim(model)
        if wasRetained { registry.retain(object) }
        withExtendedLifetime(former) {}
        return model
    }
}
