"""REINFORCE with a baseline on a small made game: very small steps, one run for each move and one for each episode."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


class Balance:
    """A cart on a line pushed left or right; the game ends when it leaves [-1, 1], or after 40 moves."""

    def __init__(self, seed):
        self._random = np.random.RandomState(seed)

    def reset(self):
        self._state, self._moves = self._random.uniform(-0.2, 0.2, 2), 0
        return self._state

    def step(self, action):
        place, speed = self._state
        speed += 0.06 * (2 * action - 1) + 0.03 * np.sign(place) + 0.01 * self._random.randn()
        self._state, self._moves = np.array([place + speed, speed]), self._moves + 1
        out = abs(self._state[0]) > 1
        return self._state, 0.0 if out else 1.0, out or self._moves >= 40


def main():
    options = common.arguments(__doc__, steps=25)
    tf.set_random_seed(options.seed)
    state, action = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [None])
    gain = tf.placeholder(tf.float32, [None])
    hidden = tf.layers.dense(state, 16, tf.nn.tanh)
    logits = tf.layers.dense(hidden, 2)
    value = tf.layers.dense(hidden, 1)[:, 0]
    chosen = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits)
    loss = tf.reduce_mean(chosen * tf.stop_gradient(gain - value)) + 0.5 * tf.reduce_mean(tf.square(gain - value))
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    likely = tf.nn.softmax(logits)
    game, random = Balance(options.seed), np.random.RandomState(options.seed)
    record = common.Record(options)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            states, actions, rewards, now, over = [], [], [], game.reset(), False
            while not over:
                states.append(now)
                # Rounded, so that the last bits of two engines do not choose different moves.
                chance = round(float(sess.run(likely, {state: [now]})[0, 1]), 4)
                actions.append(int(random.uniform() < chance))
                now, reward, over = game.step(actions[-1])
                rewards.append(reward)
            gains = [sum(r * 0.95**k for k, r in enumerate(rewards[i:])) for i in range(len(rewards))]
            record.add(sess.run([loss, train], {state: states, action: actions, gain: gains})[0])
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
